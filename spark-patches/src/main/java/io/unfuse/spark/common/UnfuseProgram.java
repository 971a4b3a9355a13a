package io.unfuse.spark.common;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Runs {@code unfuse} on the profile as a child process with low priority, bounded in time and
 * output: this JVM does not analyse anything.
 */
public final class UnfuseProgram {
    /** Both are set by the agent. */
    private static final String DIR = "unfuse.dir";

    private static final String PROGRAM = "unfuse.program";

    private static final int MAX_COMPLAINT_BYTES = 8192;

    private final String program;
    private final String dir;

    public UnfuseProgram(String program, String dir) {
        this.program = program;
        this.dir = dir;
    }

    /** The program for the profile of this JVM; null if the agent did not say where both are. */
    public static UnfuseProgram configured() {
        String program = System.getProperty(PROGRAM);
        String dir = System.getProperty(DIR);
        return program == null || dir == null ? null : new UnfuseProgram(program, dir);
    }

    /** Why there is no answer, in a sentence for the user. */
    public static final class Failure extends Exception {
        private static final long serialVersionUID = 1L;

        public Failure(String sentence) {
            super(sentence);
        }
    }

    /** The profile. */
    public String dir() {
        return dir;
    }

    /** Where the program is expected. */
    public String path() {
        return program;
    }

    /** Whether the program is there. */
    public boolean exists() {
        return new File(program).canExecute();
    }

    /**
     * The output of a command on the profile, UTF-8.
     *
     * @param what the output, for a failure: {@code The report}
     * @param byHand what the user can run instead
     * @param arguments those after the profile's directory
     */
    public String output(
            String what,
            String byHand,
            int maxBytes,
            int limitMillis,
            String command,
            String... arguments)
            throws InterruptedException, Failure {
        List<String> line =
                new ArrayList<>(Arrays.asList("nice", "-n", "10", program, command, dir));
        line.addAll(Arrays.asList(arguments));
        Process process;
        try {
            process = new ProcessBuilder(line).start();
            process.getOutputStream().close();
        } catch (IOException e) {
            throw new Failure(program + " cannot be run: " + e.getMessage());
        }
        try {
            Reader output = new Reader(process.getInputStream(), maxBytes, process);
            Reader complaints = new Reader(process.getErrorStream(), MAX_COMPLAINT_BYTES, null);
            if (!process.waitFor(limitMillis, TimeUnit.MILLISECONDS)) {
                throw new Failure(
                        what + " takes more than " + limitMillis / 1000 + " s; run " + byHand);
            }
            output.join(limitMillis);
            complaints.join(1000);
            if (output.overflowed) {
                throw new Failure(
                        what + " is larger than " + (maxBytes >> 20) + " MiB; run " + byHand);
            }
            if (process.exitValue() != 0) {
                String[] lines = complaints.text().trim().split("\n");
                String last = lines[lines.length - 1];
                throw new Failure(
                        last.isEmpty() ? "unfuse " + command + " failed; run " + byHand : last);
            }
            return output.text();
        } finally {
            process.destroyForcibly();
        }
    }

    /**
     * Reads the output of a process, so that it never blocks; keeps a limited amount, and ends a
     * given process that exceeds it.
     */
    private static final class Reader extends Thread {
        private final InputStream in;
        private final int most;
        private final Process ended;
        private volatile byte[] bytes = new byte[0];
        volatile boolean overflowed;

        Reader(InputStream in, int most, Process ended) {
            super("unfuse-output");
            this.in = in;
            this.most = most;
            this.ended = ended;
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            ByteArrayOutputStream kept = new ByteArrayOutputStream();
            byte[] chunk = new byte[1 << 13];
            try {
                for (int length = in.read(chunk); length >= 0; length = in.read(chunk)) {
                    int room = most - kept.size();
                    kept.write(chunk, 0, Math.min(length, room));
                    if (length > room && ended != null) {
                        overflowed = true;
                        ended.destroyForcibly();
                        break;
                    }
                }
            } catch (IOException endOfProcess) {
                // Keep what was read.
            }
            bytes = kept.toByteArray();
        }

        String text() {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }
}
