import io.unfuse.spark.metrics.ContentionEvent;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.Locale;

/** A listener that writes a line for each event about contention: the culprit and three numbers of seconds. */
public final class Starved extends SparkListener {
    private static final Path FILE = Paths.get(System.getenv("UNFUSE_TEST_EVENTS"));

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof ContentionEvent) {
            ContentionEvent starved = (ContentionEvent) event;
            String line =
                    String.format(
                            Locale.ROOT,
                            "%f %f %f %d %s",
                            starved.culpritSecondsLow,
                            starved.culpritSeconds,
                            starved.culpritSecondsHigh,
                            starved.query,
                            starved.culprit);
            try {
                Files.write(
                        FILE,
                        Collections.singleton(line),
                        StandardOpenOption.CREATE,
                        StandardOpenOption.APPEND);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
