package io.unfuse.spark.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.unfuse.spark.common.UnfuseProgram;

import org.apache.spark.scheduler.SparkListenerEvent;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;

class ContentionMonitorTest {
    private static final String ALERT =
            "{\"victim\":\"3\",\"label\":\"query 3: victim\",\"by_others\":%s,\"by_others_seconds\":%s,"
                    + "\"main_culprit\":\"yes (user bob)\",\"main_culprit_seconds\":1.0,"
                    + "\"main_culprit_seconds_low\":0.6,\"main_culprit_seconds_high\":1.5,"
                    + "\"application\":\"%s\",\"execution\":%s}";

    @TempDir private Path dir;

    private final List<SparkListenerEvent> events = new ArrayList<>();

    /** A monitor whose program prints these lines and its arguments. */
    private ContentionMonitor monitor(String... lines) throws IOException {
        Path answer = dir.resolve("answer");
        Files.write(answer, List.of(lines));
        Path program = dir.resolve("unfuse");
        String script = "#!/bin/sh\necho \"$*\" > " + dir + "/arguments\ncat " + answer + "\n";
        Files.writeString(program, script);
        Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
        UnfuseProgram unfuse = new UnfuseProgram(program.toString(), "/profile");
        return new ContentionMonitor(unfuse, "app-1", 10_000, events::add);
    }

    private static String alert(String part, String seconds, String app, String execution) {
        return String.format(ALERT, part, seconds, app, execution);
    }

    @Test
    void theQueryThatLostMostIsShownAndThoseThatLostALittleMakeNoEvent() throws Exception {
        ContentionMonitor monitor =
                monitor(
                        alert("0.05", "0.2", "app-1", "2"),
                        alert("0.5", "2.5", "app-1", "3"),
                        alert("0.9", "9.0", "app-2", "4"),
                        alert("0.9", "9.0", "app-1", "null"));
        assertEquals(-1, monitor.worst().query);
        monitor.update(true);
        assertEquals(
                "blame /profile --json --alert=0% --since=10000ms\n",
                Files.readString(dir.resolve("arguments")));
        ContentionEvent worst = monitor.worst();
        assertEquals(3, worst.query);
        assertEquals(2.5, worst.lostSeconds);
        assertEquals(List.of(worst), events);
        assertEquals(
                "query 3: victim lost 2.5 s of its tasks' time (50%) to others, "
                        + "of these 1.0 s (0.6 to 1.5) to yes (user bob)",
                worst.toString());
        assertFalse(worst.logEvent());
        monitor.update(false);
        assertEquals(-1, monitor.worst().query);
        assertEquals(1, events.size());
    }

    @Test
    void anAnswerThatIsNoneIsAFailure() throws Exception {
        ContentionMonitor monitor = monitor("{\"victim\":");
        assertThrows(IOException.class, () -> monitor.update(true));
        assertEquals(List.of(), events);
    }
}
