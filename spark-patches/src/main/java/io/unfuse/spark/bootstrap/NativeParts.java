package io.unfuse.spark.bootstrap;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The agent's library and the program {@code unfuse}, which the jar carries, as files that only
 * this user can read.
 */
final class NativeParts {
    private static final String LIBRARY = "libunfuse.so";
    private static final String PROGRAM = "unfuse";

    /** Platforms for which there may be parts. */
    private static final String[] PLATFORMS = {"linux-x86_64", "linux-aarch64"};

    private static final FileAttribute<Set<PosixFilePermission>> PRIVATE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

    /** A mapping of musl's loader, which is its C library. */
    private static final Pattern MUSL = Pattern.compile("/ld-musl-[^/]*$");

    /** How long the program may take to print its version. */
    private static final int PATIENCE_SECONDS = 10;

    private final Path dir;

    private NativeParts(Path dir) {
        this.dir = dir;
    }

    /** Loads the agent's side; returns why the JVM is not profiled, or null. */
    static native String attach(String options);

    File library() {
        return dir.resolve(LIBRARY).toFile();
    }

    File program() {
        return dir.resolve(PROGRAM).toFile();
    }

    /**
     * Unpacks the parts into the first directory that lets programs run: {@code wanted}, or the one
     * for temporary files, or the working directory.
     */
    static NativeParts unpack(String wanted) throws InterruptedException, NotLoaded {
        String platform = platform(Paths.get("/proc/self/maps"));
        String folder = folder(platform);
        if (!isIn(platform)) {
            throw new NotLoaded(
                    "this jar has no native parts for "
                            + platform
                            + "; it has "
                            + Stream.of(PLATFORMS)
                                    .filter(NativeParts::isIn)
                                    .collect(Collectors.joining(" and "))
                            + ", for images with glibc");
        }
        List<String> failures = new ArrayList<>();
        for (String parent : parents(wanted)) {
            try {
                NativeParts parts =
                        new NativeParts(
                                Files.createTempDirectory(
                                        Paths.get(parent), "unfuse-native-", PRIVATE));
                try {
                    parts.copy(folder, LIBRARY);
                    parts.copy(folder, PROGRAM);
                    parts.tryToRun();
                    return parts;
                } catch (IOException | RuntimeException e) {
                    parts.delete();
                    throw e;
                }
            } catch (IOException e) {
                failures.add(parent + " (" + e.getMessage() + ")");
            }
        }
        throw new NotLoaded(
                "the native parts cannot be unpacked and run in "
                        + String.join(" or ", failures)
                        + "; set spark.unfuse.native.dir to a directory where programs may run");
    }

    /** Where the jar has the parts for a platform. */
    private static String folder(String platform) {
        return "/native/" + platform + "/";
    }

    /** Whether the jar has the parts for a platform. */
    private static boolean isIn(String platform) {
        return NativeParts.class.getResource(folder(platform) + LIBRARY) != null;
    }

    /** Jars of other versions that this plugin's class loader finds too. */
    static List<String> otherVersions() {
        List<String> others = new ArrayList<>();
        String library = folder(platform(Paths.get("/proc/self/maps"))) + LIBRARY;
        URL ours = NativeParts.class.getResource(library);
        if (ours == null) {
            return others;
        }
        try {
            long checksum = checksum(ours);
            Enumeration<URL> all =
                    NativeParts.class.getClassLoader().getResources(library.substring(1));
            while (all.hasMoreElements()) {
                URL other = all.nextElement();
                if (checksum(other) != checksum) {
                    others.add(jar(other));
                }
            }
        } catch (IOException | RuntimeException error) {
            // What cannot be read is no version that could be used.
        }
        return others;
    }

    /** The checksum that a jar has for one of its files; 0 for a file in no jar. */
    private static long checksum(URL file) throws IOException {
        URLConnection connection = file.openConnection();
        // A jar that is kept open could not be replaced.
        connection.setUseCaches(false);
        if (!(connection instanceof JarURLConnection)) {
            return 0;
        }
        try (JarFile jar = ((JarURLConnection) connection).getJarFile()) {
            return jar.getJarEntry(((JarURLConnection) connection).getEntryName()).getCrc();
        }
    }

    /** The path of the jar that holds a file. */
    private static String jar(URL file) {
        String path = file.getPath();
        int end = path.indexOf('!');
        return (end < 0 ? path : path.substring(0, end)).replaceFirst("^file:", "");
    }

    /** The jar that the plugin comes from. */
    static String ourJar() {
        URL ours = NativeParts.class.getResource("NativeParts.class");
        return ours == null ? "" : jar(ours);
    }

    private static List<String> parents(String wanted) {
        List<String> parents = new ArrayList<>();
        if (wanted != null) {
            parents.add(wanted);
            return parents;
        }
        parents.add(System.getProperty("java.io.tmpdir"));
        parents.add(System.getProperty("user.dir"));
        return parents;
    }

    /** The system, the processor, and the C library if it is musl, as in Alpine's images. */
    static String platform(Path mappings) {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch");
        if (machine.equals("amd64")) {
            machine = "x86_64";
        }
        return system + "-" + machine + (usesMusl(mappings) ? "-musl" : "");
    }

    private static boolean usesMusl(Path mappings) {
        try (Stream<String> lines = Files.lines(mappings, StandardCharsets.ISO_8859_1)) {
            return lines.anyMatch(line -> MUSL.matcher(line).find());
        } catch (IOException | UncheckedIOException error) {
            return false;
        }
    }

    private void copy(String folder, String name) throws IOException {
        Path file = dir.resolve(name);
        Files.createFile(file, PRIVATE);
        try (InputStream part = NativeParts.class.getResourceAsStream(folder + name);
                OutputStream to =
                        Files.newOutputStream(file, StandardOpenOption.TRUNCATE_EXISTING)) {
            byte[] buffer = new byte[1 << 16];
            for (int length = part.read(buffer); length >= 0; length = part.read(buffer)) {
                to.write(buffer, 0, length);
            }
        }
    }

    /** Fails where the file system lets no programs run, or the C library is too old for ours. */
    private void tryToRun() throws IOException, InterruptedException {
        Process process =
                new ProcessBuilder(program().getPath(), "--version")
                        .redirectErrorStream(true)
                        .redirectOutput(new File("/dev/null"))
                        .redirectInput(new File("/dev/null"))
                        .start();
        try {
            if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                throw new IOException("a program does not end there");
            }
        } finally {
            process.destroyForcibly();
        }
        if (process.exitValue() != 0) {
            throw new IOException("unfuse --version ends with code " + process.exitValue());
        }
    }

    void deleteAtExit() {
        Runtime.getRuntime().addShutdownHook(new Thread(this::delete, "unfuse-delete"));
    }

    void delete() {
        for (String name : new String[] {LIBRARY, PROGRAM}) {
            try {
                Files.deleteIfExists(dir.resolve(name));
            } catch (IOException e) {
                // What is left is private, and the next reboot clears the directory.
            }
        }
        try {
            Files.deleteIfExists(dir);
        } catch (IOException e) {
            // As above.
        }
    }
}
