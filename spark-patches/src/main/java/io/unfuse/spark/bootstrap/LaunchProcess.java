package io.unfuse.spark.bootstrap;

import com.sun.management.HotSpotDiagnosticMXBean;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * {@code unfuse launch}, which starts the profiling processes and ends. It prints the options that
 * lead the agent to these, or why it did not start them.
 */
final class LaunchProcess {
    /** How long the profiling processes may take to start; Spark waits for them. */
    private static final int PATIENCE_SECONDS = 20;

    /** How long a process that ends may take to say why. */
    private static final int LAST_WORD_SECONDS = 1;

    private static final String REFUSAL = "refused: ";

    private final Process process;

    /** Its lines; an empty one is the end. */
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

    LaunchProcess(File program, String options) throws IOException {
        List<String> command = new ArrayList<>();
        Collections.addAll(
                command, program.getPath(), "launch", "--pid", pid(), "--options", options);
        if (hasFramePointers()) {
            command.add("--frame-pointers");
        }
        process =
                new ProcessBuilder(command)
                        .redirectInput(new File("/dev/null"))
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start();
        Thread reader = new Thread(this::read, "unfuse-launch");
        reader.setDaemon(true);
        reader.start();
    }

    /**
     * This JVM's; {@code ProcessHandle} is not there in Java 8, which has to say that it is old.
     */
    private static String pid() throws IOException {
        return new File("/proc/self").getCanonicalFile().getName();
    }

    /** Whether all code of this JVM keeps frame pointers, by which CPU timers find callers. */
    private static boolean hasFramePointers() {
        try {
            HotSpotDiagnosticMXBean flags =
                    ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
            return Boolean.parseBoolean(flags.getVMOption("PreserveFramePointer").getValue());
        } catch (RuntimeException | LinkageError error) {
            // A runtime without the module jdk.management, or another JVM.
            return false;
        }
    }

    private void read() {
        try (BufferedReader output =
                new BufferedReader(
                        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                lines.add(line);
            }
        } catch (IOException e) {
            // The lines so far are all.
        }
        lines.add("");
    }

    /** The agent's options that lead it to the profiling processes. */
    String recorder() throws InterruptedException, NotLoaded {
        String line = lines.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (line == null) {
            throw new NotLoaded(
                    "the profiling processes did not start within " + PATIENCE_SECONDS + " s");
        }
        if (line.startsWith(REFUSAL)) {
            throw new NotLoaded(line.substring(REFUSAL.length()));
        }
        if (line.isEmpty()) {
            throw new NotLoaded("the program that starts the profiling processes has failed");
        }
        return line;
    }

    /** Why it failed after that; null if it says nothing. */
    String refusal() throws InterruptedException {
        String line = lines.poll(LAST_WORD_SECONDS, TimeUnit.SECONDS);
        return line != null && line.startsWith(REFUSAL) ? line.substring(REFUSAL.length()) : null;
    }

    /** Ends it, if it has not ended; the profiling processes go on. */
    void end() throws InterruptedException {
        if (!process.waitFor(LAST_WORD_SECONDS, TimeUnit.SECONDS)) {
            process.destroyForcibly();
        }
    }
}
