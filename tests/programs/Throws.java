/** Exceptions that unwind many frames, and two threads that contend for one lock. */
public class Throws {
    static final Object LOCK = new Object();
    static long counter;

    static long deep(int depth, long x) {
        if (depth == 0) {
            throw new IllegalArgumentException("deep down");
        }
        return deep(depth - 1, x + depth) + 1;
    }

    static long exceptions() {
        long x = 0;
        for (int i = 0; i < 500; i++) {
            try {
                x += deep(20, i);
            } catch (IllegalArgumentException e) {
                x += e.getMessage().length();
            }
        }
        return x;
    }

    static long locks() {
        for (int i = 0; i < 200_000; i++) {
            synchronized (LOCK) {
                counter += i;
            }
        }
        return counter;
    }

    public static void main(String[] args) throws Exception {
        Runnable turns = () -> {
            try {
                Truth.turns(Long.parseLong(args[0]), "Throws.exceptions", (Truth.Part) Throws::exceptions, "Throws.locks", (Truth.Part) Throws::locks);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        };
        Thread second = new Thread(turns, "second");
        second.start();
        turns.run();
        second.join();
        Truth.print();
    }
}
