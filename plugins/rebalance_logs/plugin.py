"""The subcommands and the formats of this package. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable

from coordinator_core.registry.hookspecs import CommandSpec, LogFormatSpec, hookimpl


@hookimpl
def commands() -> Iterable[CommandSpec]:
    """Return the subcommands of this package."""
    return [
        CommandSpec(
            "diagnose",
            "rebalance_logs.commands.diagnose:diagnose",
            "Why a group rebalanced, from logs.",
            "rebalance_logs.document:DiagnosisDocument",
        ),
    ]


@hookimpl
def log_formats() -> Iterable[LogFormatSpec]:
    """Return the programs whose logs this package reads. A line is of the first that has a wording for it."""
    return [
        LogFormatSpec("kafka", "rebalance_logs.broker_lines:BROKER", "Kafka's brokers."),
        LogFormatSpec("java", "rebalance_logs.java_lines:JAVA", "Kafka's Java consumer."),
        LogFormatSpec(
            "kafka-python", "rebalance_logs.library_lines:KAFKA_PYTHON", "kafka-python and aiokafka."
        ),
        LogFormatSpec("librdkafka", "rebalance_logs.library_lines:LIBRDKAFKA", "librdkafka."),
        LogFormatSpec("kafkajs", "rebalance_logs.library_lines:KAFKAJS", "KafkaJS."),
        LogFormatSpec("franz-go", "rebalance_logs.library_lines:FRANZ_GO", "franz-go."),
    ]
