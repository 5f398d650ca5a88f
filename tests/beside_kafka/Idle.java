import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A connector of Kafka Connect with as many tasks as it may have, which do nothing. */
public class Idle extends SourceConnector {
    public static class Nothing extends SourceTask {
        @Override public String version() { return "1"; }
        @Override public void start(Map<String, String> given) { }
        @Override public void stop() { }
        @Override public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(100);
            return null;
        }
    }

    @Override public String version() { return "1"; }
    @Override public void start(Map<String, String> given) { }
    @Override public void stop() { }
    @Override public Class<? extends Task> taskClass() { return Nothing.class; }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public List<Map<String, String>> taskConfigs(int most) {
        return Collections.nCopies(most, Map.of());
    }
}
