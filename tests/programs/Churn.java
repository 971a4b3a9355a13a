import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import javax.tools.ToolProvider;
import java.io.*;
import java.nio.file.*;

/**
 * Loads the same class text under many names in loaders that are dropped, so that compiled code comes and goes and addresses
 * are used again. Prints, for each class, the thread's CPU time (ns) before and after it ran: a sample of a class outside its
 * time would be a wrong method.
 */
public class Churn {
    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000L;
        Path dir = Files.createTempDirectory("churn");
        int kinds = 8;
        List<String> files = new ArrayList<>();
        files.add("-d");
        files.add(dir.toString());
        for (int k = 0; k < kinds; k++) {
            Path file = dir.resolve("Gen" + k + ".java");
            Files.writeString(file, "public class Gen" + k + " { public static long run(long x) { for (int i = 0; i < 20000; i++)"
                    + " x = x * " + (2 * k + 3) + " + (x >>> " + (k + 1) + "); return x; } }");
            files.add(file.toString());
        }
        if (ToolProvider.getSystemJavaCompiler().run(null, null, System.err, files.toArray(new String[0])) != 0) {
            throw new IllegalStateException("the classes do not compile");
        }
        ThreadMXBean cpu = ManagementFactory.getThreadMXBean();
        byte[][] code = new byte[kinds][];
        for (int k = 0; k < kinds; k++) {
            code[k] = Files.readAllBytes(dir.resolve("Gen" + k + ".class"));
        }
        long x = 1;
        int loaded = 0;
        for (int round = 0; System.nanoTime() < end; round++) {
            int k = round % kinds;
            String name = "Gen" + k;
            byte[] bytes = code[k];
            ClassLoader loader = new ClassLoader(Churn.class.getClassLoader()) {
                @Override
                protected Class<?> findClass(String wanted) {
                    return defineClass(wanted, bytes, 0, bytes.length);
                }
            };
            var run = loader.loadClass(name).getMethod("run", long.class);
            long from = cpu.getCurrentThreadCpuTime();
            long until = System.nanoTime() + 60_000_000L;
            while (System.nanoTime() < until) {
                x = (Long) run.invoke(null, x);
            }
            System.out.println(name + " " + from + " " + cpu.getCurrentThreadCpuTime());
            loaded++;
            if (round % 10 == 9) {
                System.gc();
            }
        }
        System.out.println("loaded " + loaded + " " + x);
    }
}
