import java.util.ArrayList;
import java.util.List;

/** Virtual threads, or platform threads in older JDKs: `twice` does twice the work of `once`. */
public class Virtual {
    static volatile long sink;

    static double once(double x) {
        for (int i = 0; i < 20_000; i++) {
            x = Math.sqrt(x + i) / 1.0001; // HOT once
        }
        return x;
    }

    static double twice(double x) {
        for (int i = 0; i < 40_000; i++) {
            x = Math.sqrt(x + 2 * i) / 1.0001; // HOT twice
        }
        return x;
    }

    static void work(int rounds) {
        double x = 1;
        for (int i = 0; i < rounds; i++) {
            x = once(x);
            Thread.yield();
            x += twice(x);
            if (i % 10 == 0) {
                try {
                    Thread.sleep(1);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        }
        sink += (long) x;
    }

    static Thread start(Runnable work) throws Exception {
        try {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        } catch (NoSuchMethodException e) {
            Thread thread = new Thread(work, "plain");
            thread.start();
            return thread;
        }
    }

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            threads.add(start(() -> work(Integer.parseInt(args[0]))));
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
