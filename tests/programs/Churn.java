import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import javax.tools.ToolProvider;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Instant;

/**
 * Loads the same classes under many names, in class loaders that become garbage. So the JVM unloads compiled code and reuses its
 * addresses. Each class has its own name, `GKIND_NUMBER`. For each class, prints the thread's CPU time (ns) before and after its
 * run, and the time (ns since the epoch) at the begin and at the end. A sample of a class outside this time has a wrong method.
 * Arguments: milliseconds, and optionally a file that ends the program as soon as it exists.
 */
public class Churn {
    /** All names have the same length, because `renamed` keeps the length of the class file. */
    static String name(int kind, int number) {
        return String.format("G%d_%05d", kind, number);
    }

    /** Replaces the name of the class in a class file. */
    static byte[] renamed(byte[] file, String from, String to) {
        String text = new String(file, StandardCharsets.ISO_8859_1);
        return text.replace(from, to).getBytes(StandardCharsets.ISO_8859_1);
    }

    static long epoch() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    public static void main(String[] args) throws Exception {
        // In the class path, which the test deletes. A subdirectory of it, so that only the loaders made here find the classes.
        Path dir = Files.createTempDirectory(Path.of(System.getProperty("java.class.path")), "churn");
        int kinds = 8;
        List<String> files = new ArrayList<>();
        files.add("-d");
        files.add(dir.toString());
        for (int k = 0; k < kinds; k++) {
            Path file = dir.resolve(name(k, 0) + ".java");
            Files.writeString(file, "public class " + name(k, 0) + " { public static long run(long x) { for (int i = 0; i < 20000; i++)"
                    + " x = x * " + (2 * k + 3) + " + (x >>> " + (k + 1) + "); return x; } }");
            files.add(file.toString());
        }
        if (ToolProvider.getSystemJavaCompiler().run(null, null, System.err, files.toArray(new String[0])) != 0) {
            throw new IllegalStateException("the classes do not compile");
        }
        ThreadMXBean cpu = ManagementFactory.getThreadMXBean();
        byte[][] code = new byte[kinds][];
        for (int k = 0; k < kinds; k++) {
            code[k] = Files.readAllBytes(dir.resolve(name(k, 0) + ".class"));
        }
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000L;
        long x = 1;
        int loaded = 0;
        Path stop = args.length > 1 ? Path.of(args[1]) : null;
        for (int round = 0; System.nanoTime() < end && (stop == null || !Files.exists(stop)); round++) {
            int k = round % kinds;
            String name = name(k, round);
            byte[] bytes = renamed(code[k], name(k, 0), name);
            ClassLoader loader = new ClassLoader(Churn.class.getClassLoader()) {
                @Override
                protected Class<?> findClass(String wanted) {
                    return defineClass(wanted, bytes, 0, bytes.length);
                }
            };
            var run = loader.loadClass(name).getMethod("run", long.class);
            long begun = epoch();
            long from = cpu.getCurrentThreadCpuTime();
            long until = System.nanoTime() + 60_000_000L;
            while (System.nanoTime() < until) {
                x = (Long) run.invoke(null, x);
            }
            System.out.println(name + " " + from + " " + cpu.getCurrentThreadCpuTime() + " " + begun + " " + epoch());
            loaded++;
            if (round % 10 == 9) {
                System.gc();
            }
        }
        System.out.println("loaded " + loaded + " " + x);
    }
}
