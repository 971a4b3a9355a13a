package io.unfuse.spark.ship;

import io.unfuse.spark.common.Agent;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Copies finished files of the profile from this JVM's spool to the user's URI, through Hadoop's
 * file systems, and deletes them from the spool. It has its own thread; only a stopping Spark waits
 * for it, for a short time.
 *
 * <p>The writer lives slightly longer than the JVM, and a killed JVM ships nothing more. The next
 * JVM on this machine that ships to the same URI ships the files left in the spool.
 */
public final class SegmentShipper implements Runnable {
    /** Set by the agent if {@code dir} is a URI. */
    static final String URI_PROPERTY = "unfuse.uri";

    /** This JVM's spool, set by the agent. */
    static final String SPOOL_PROPERTY = "unfuse.spool";

    /** The profile's folders in the order of copying, set by the agent. */
    static final String FOLDERS_PROPERTY = "unfuse.folders";

    private static final String MANIFEST = "unfuse.json";

    /** A file in a spool with the target of its files. */
    private static final String TARGET = "target.uri";

    /** Stores in which a file appears when it is complete, and renaming copies it. */
    private static final Set<String> STORES =
            new HashSet<>(Arrays.asList("s3", "s3n", "s3a", "gs", "oss", "cosn", "obs", "tos"));

    private static final FsPermission PRIVATE = new FsPermission((short) 0700);
    private static final long ROUND_MILLIS = 1000;
    private static final long LONGEST_PAUSE_MILLIS = 60_000;

    /** A writer that wrote nothing for this time was killed. */
    private static final long LONGEST_SILENCE_MILLIS = 600_000;

    /** Number of rounds between two looks for spools of other JVMs. */
    private static final int ADOPT_EVERY = 30;

    /**
     * How long a stopping Spark waits for samples to be written, and then for files to be copied,
     * ms.
     */
    private static final int DELIVER_MILLIS = 2000;

    private static final int SHIP_MILLIS = 5000;

    /**
     * How long it waits if it has waited without success before, ms: the target cannot be reached,
     * and the end of the JVM must not be delayed.
     */
    private static final int SHIP_AGAIN_MILLIS = 500;

    private static SegmentShipper running;

    private final File spool;

    /**
     * The identity of the spool's directory at the start: others could replace it if its parent
     * directory allows it.
     */
    private final Object identity;

    private final Path target;
    private final String[] folders;
    private final Configuration conf;
    private final Set<Path> made = new HashSet<>();
    private FileSystem files;
    private boolean complained;

    /** Requested and finished rounds: guarded by this. */
    private long asked;

    private long done;

    /** A wait without success since the last finished round: guarded by this. */
    private boolean inVain;

    SegmentShipper(File spool, String target, String[] folders, Configuration conf) {
        this.spool = spool;
        identity = identity(spool);
        this.target = new Path(target);
        this.folders = folders;
        this.conf = conf;
    }

    /** Starts the thread, once in a JVM, if the profile is to be shipped. */
    public static synchronized void start(Supplier<Configuration> conf) {
        String uri = System.getProperty(URI_PROPERTY);
        String spool = System.getProperty(SPOOL_PROPERTY);
        String folders = System.getProperty(FOLDERS_PROPERTY);
        if (uri == null || spool == null || folders == null || running != null) {
            return;
        }
        Configuration settings = new Configuration(conf.get());
        // Hadoop's own hook would close file systems that ours still needs.
        settings.setBoolean("fs.automatic.close", false);
        running = new SegmentShipper(new File(spool), uri, folders.split(","), settings);
        Thread thread = new Thread(running, "unfuse-shipper");
        thread.setDaemon(true);
        thread.start();
        // A Worker ends executors by a signal while their plugins are still shutting down, and
        // kills them after ten seconds.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> finish(true), "unfuse-shipper-end"));
    }

    /**
     * Ships all files so far, as far as possible in a few seconds; {@code last} if the JVM ends
     * now.
     */
    public static void finish(boolean last) {
        SegmentShipper shipper;
        synchronized (SegmentShipper.class) {
            shipper = running;
        }
        if (shipper == null) {
            return;
        }
        try {
            boolean delivered = Agent.deliver(DELIVER_MILLIS, last);
            boolean shipped = shipper.shipNow();
            if (last && !(delivered && shipped)) {
                Agent.log(
                        "the JVM ended before the end of the profile was copied to "
                                + shipper.target
                                + "; the next JVM on this machine with the same dir and spools copies it from "
                                + shipper.spool);
            }
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        } catch (Throwable error) {
            Agent.failed("copying the end of the profile", error);
        }
    }

    private boolean shipNow() throws InterruptedException {
        synchronized (this) {
            long until =
                    System.nanoTime() + (inVain ? SHIP_AGAIN_MILLIS : SHIP_MILLIS) * 1_000_000L;
            long number = ++asked;
            notifyAll();
            while (done < number) {
                long left = (until - System.nanoTime()) / 1_000_000;
                if (left <= 0) {
                    inVain = true;
                    return false;
                }
                wait(left);
            }
            return true;
        }
    }

    @Override
    public void run() {
        long pause = ROUND_MILLIS;
        for (long round = 0; ; round++) {
            long number;
            synchronized (this) {
                number = asked;
            }
            try {
                shipSpool(spool);
                if (round % ADOPT_EVERY == 0 || number > done()) {
                    adopt();
                }
                synchronized (this) {
                    done = number;
                    inVain = false;
                    notifyAll();
                }
                pause = ROUND_MILLIS;
            } catch (Throwable error) {
                complain(error);
                pause = Math.min(2 * pause, LONGEST_PAUSE_MILLIS);
            }
            try {
                synchronized (this) {
                    if (asked == number) {
                        wait(pause);
                    }
                }
            } catch (InterruptedException stop) {
                return;
            }
        }
    }

    private synchronized long done() {
        return done;
    }

    private void complain(Throwable error) {
        if (!complained) {
            complained = true;
            Agent.log(
                    "copying the profile to "
                            + target
                            + " failed; unfuse tries again, and keeps the files in "
                            + spool
                            + " until then: "
                            + error);
        }
    }

    /** One round: ships all files that are finished now. */
    void shipSpool(File from) throws IOException {
        if (from.equals(spool) && (identity == null || !identity.equals(identity(spool)))) {
            throw new IOException("its spool " + spool + " was removed or replaced");
        }
        if (files == null) {
            FileSystem opened = FileSystem.newInstance(target.toUri(), conf);
            opened.setWriteChecksum(false);
            files = opened;
        }
        File mark = new File(from, TARGET);
        if (!mark.exists()) {
            try (OutputStream out = PrivateFile.create(mark.toPath())) {
                out.write(target.toString().getBytes(StandardCharsets.UTF_8));
            }
        }
        Path manifest = new Path(target, MANIFEST);
        if (made.add(manifest) && !files.exists(manifest)) {
            try {
                make(target);
                copy(new File(from, MANIFEST), manifest);
            } catch (IOException | RuntimeException error) {
                made.remove(manifest);
                throw error;
            }
        }
        for (String folder : folders) {
            File[] finished =
                    new File(from, folder)
                            .listFiles(
                                    (dir, name) ->
                                            !name.startsWith(".")
                                                    && name.endsWith(
                                                            folder.equals("sources")
                                                                    ? ".java"
                                                                    : ".parquet"));
            if (finished == null || finished.length == 0) {
                continue;
            }
            Arrays.sort(finished);
            Path to = new Path(target, folder);
            make(to);
            for (File file : finished) {
                Path copy = new Path(to, file.getName());
                // Other executors generate the same code.
                if (!folder.equals("sources") || !files.exists(copy)) {
                    copy(file, copy);
                }
                Files.deleteIfExists(file.toPath());
            }
        }
    }

    private void make(Path folder) throws IOException {
        if (!made.contains(folder)) {
            if (!files.exists(folder)) {
                FileSystem.mkdirs(files, folder, PRIVATE);
            }
            made.add(folder);
        }
    }

    /** A file only appears under its name when it is complete. */
    private void copy(File from, Path to) throws IOException {
        boolean isStore = STORES.contains(String.valueOf(files.getUri().getScheme()));
        Path aside =
                isStore
                        ? to
                        : new Path(
                                to.getParent(),
                                "." + to.getName() + "." + spool.getName() + ".tmp");
        try (InputStream in = new FileInputStream(from);
                FSDataOutputStream out = files.create(aside, true)) {
            byte[] buffer = new byte[64 << 10];
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                out.write(buffer, 0, read);
            }
        } catch (java.io.FileNotFoundException gone) {
            if (from.exists()) {
                throw gone;
            }
            // The writer has deleted it to free space in the spool.
            return;
        }
        if (!isStore && !files.rename(aside, to)) {
            // It exists already: copied before, and not deleted here yet.
            files.delete(aside, false);
            if (!files.exists(to)) {
                throw new IOException("cannot rename " + aside);
            }
        }
    }

    /** Ships files for the same URI that ended JVMs left in spools next to ours. */
    void adopt() throws IOException {
        File[] spools =
                spool.getParentFile().listFiles((dir, name) -> name.startsWith("unfuse-spool-"));
        if (spools == null) {
            return;
        }
        for (File other : spools) {
            File mark = new File(other, TARGET);
            if (other.equals(spool) || !isOurs(other) || !mark.canRead() || hasWriter(other)) {
                continue;
            }
            String theirs = new String(Files.readAllBytes(mark.toPath()), StandardCharsets.UTF_8);
            if (theirs.equals(target.toString())) {
                shipSpool(other);
                delete(other);
            }
        }
    }

    /** Other users may create any file in the directory for temporary files. */
    private boolean isOurs(File other) throws IOException {
        if (!Files.isDirectory(other.toPath(), LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        Set<PosixFilePermission> permissions =
                Files.getPosixFilePermissions(other.toPath(), LinkOption.NOFOLLOW_LINKS);
        return !permissions.contains(PosixFilePermission.GROUP_WRITE)
                && !permissions.contains(PosixFilePermission.OTHERS_WRITE)
                && Files.getOwner(other.toPath(), LinkOption.NOFOLLOW_LINKS)
                        .equals(Files.getOwner(spool.toPath()));
    }

    /** The identity of a directory; null if it does not exist. */
    private static Object identity(File directory) {
        try {
            BasicFileAttributes about =
                    Files.readAttributes(
                            directory.toPath(),
                            BasicFileAttributes.class,
                            LinkOption.NOFOLLOW_LINKS);
            return about.isDirectory() ? about.fileKey() : null;
        } catch (IOException gone) {
            return null;
        }
    }

    /**
     * A writer adds to its processes every few seconds; if it was killed, too, its marker stays.
     */
    private static boolean hasWriter(File spool) {
        File markers = new File(spool, "live");
        String[] live = markers.list((dir, name) -> !name.contains(".failed-"));
        long heard = Math.max(markers.lastModified(), new File(spool, "processes").lastModified());
        return live != null
                && live.length > 0
                && System.currentTimeMillis() - heard < LONGEST_SILENCE_MILLIS;
    }

    private static void delete(File file) throws IOException {
        File[] inside = Files.isSymbolicLink(file.toPath()) ? null : file.listFiles();
        if (inside != null) {
            for (File child : inside) {
                delete(child);
            }
        }
        Files.deleteIfExists(file.toPath());
    }
}
