"""Kafka's command line tools and Java's Admin, in a JVM with all jars of a real Kafka."""

from typing import Any

import jpype

from tests.real_kafka.jars import classpath
from tests.rebalance_kafka.peers.line_protocol import Answer, run_tool

TOOLS = "org.apache.kafka.tools"
EXIT = "org.apache.kafka.common.utils.internals.Exit"


class JavaTool:
    def __init__(self, bootstrap: str) -> None:
        jpype.startJVM("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", classpath=[classpath()])
        self._bootstrap = bootstrap
        self._admin: Any = None
        exits, ends = jpype.JClass(EXIT), jpype.JClass("java.lang.IllegalStateException")

        class Ending:
            @jpype.JOverride
            def execute(self, status: int, message: str | None) -> None:
                raise ends(f"status {status}")

        exits.setExitProcedure(jpype.JImplements(f"{EXIT}$Procedure")(Ending)())

    def run(self, tool: str, arguments: list[str]) -> Answer:
        """Run a tool and return what it prints, and at the end the status it ends with."""
        system, printed = jpype.JClass("java.lang.System"), jpype.JClass("java.io.ByteArrayOutputStream")()
        stream = jpype.JClass("java.io.PrintStream")(printed, True)
        kept = system.out, system.err
        system.setOut(stream)
        system.setErr(stream)
        try:
            jpype.JClass(f"{TOOLS}.{tool}").main(["--bootstrap-server", self._bootstrap, *arguments])
        except jpype.JException as ended:
            stream.println(ended.getMessage())
        finally:
            system.setOut(kept[0])
            system.setErr(kept[1])
        return {"printed": str(printed.toString())}

    def admin(self, method: str, arguments: list[Any]) -> Answer:
        """Call a method of Admin and return the text of its result. Lists become those of Java."""
        if self._admin is None:
            settings = jpype.JClass("java.util.HashMap")({"bootstrap.servers": self._bootstrap})
            self._admin = jpype.JClass("org.apache.kafka.clients.admin.Admin").create(settings)
        lists = jpype.JClass("java.util.ArrayList")
        given = [lists(value) if isinstance(value, list) else value for value in arguments]
        found = getattr(self._admin, method)(*given)
        future = found.all() if hasattr(found, "all") else found.partitionsToOffsetAndMetadata()
        try:
            return {"printed": str(future.get())}
        except jpype.JException as error:
            return {"printed": str(error.getMessage())}


if __name__ == "__main__":
    run_tool(JavaTool)
