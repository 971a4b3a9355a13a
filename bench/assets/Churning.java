import java.lang.invoke.MethodHandles;
import java.util.concurrent.CountDownLatch;
import java.util.function.LongUnaryOperator;

/**
 * Classes, hidden classes and threads that come, run compiled, and go, and a heap that stays as full as it is.
 * Half of the time it sleeps. Argument: seconds.
 */
public class Churning {
    static final int KEPT = 256;
    static volatile long sink;

    /** Comes to life under new loaders and as hidden classes only. */
    public static class Template implements LongUnaryOperator {
        @Override
        public long applyAsLong(long x) {
            for (int i = 0; i < 5_000; i++) {
                x = even(x) ? half(x) : triple(x);
            }
            return x;
        }

        static boolean even(long x) {
            return (x & 1) == 0;
        }

        static long half(long x) {
            return (x >>> 1) ^ x << 7;
        }

        static long triple(long x) {
            return 3 * x + 1;
        }
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        byte[] code;
        try (var in = Churning.class.getResourceAsStream("Churning$Template.class")) {
            code = in.readAllBytes();
        }
        byte[][] kept = new byte[KEPT][];
        for (int round = 0; System.nanoTime() < end; round++) {
            work(loaded(code));
            CountDownLatch done = new CountDownLatch(1);
            new Thread(() -> brief(code, done), "churning-" + round).start();
            done.await();
            for (int i = 0; i < 16; i++) {
                kept[(16 * round + i) % KEPT] = new byte[64 << 10];
            }
            if (round % 50 == 49) {
                // Unloads the classes.
                System.gc();
            }
            Thread.sleep(50);
        }
        System.out.println(sink);
    }

    /** A thread's life: a moment's work, a second of sleep. */
    static void brief(byte[] code, CountDownLatch done) {
        try {
            work(hidden(code));
            done.countDown();
            Thread.sleep(1000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void work(LongUnaryOperator operator) {
        long x = sink + 27;
        long end = System.nanoTime() + 25_000_000L;
        while (System.nanoTime() < end) {
            x = operator.applyAsLong(x);
        }
        sink = x;
    }

    static LongUnaryOperator loaded(byte[] code) throws Exception {
        ClassLoader loader = new ClassLoader(null) {
            @Override
            protected Class<?> findClass(String name) {
                return defineClass(name, code, 0, code.length);
            }
        };
        return (LongUnaryOperator) loader.loadClass("Churning$Template").getConstructor().newInstance();
    }

    static LongUnaryOperator hidden(byte[] code) {
        try {
            var fresh = MethodHandles.lookup().defineHiddenClass(code, true);
            return (LongUnaryOperator) fresh.lookupClass().getConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
