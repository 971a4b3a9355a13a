import java.io.FileInputStream;
import java.util.Arrays;

/** Deep stacks of compiled code that calls the JDK, partly native. Every sample is below `main`, `even` and `odd`. */
public class Callers {
    static final byte[] BYTES = new byte[1 << 16];
    static final Integer[] NUMBERS = new Integer[2000];

    static double burn(double x) {
        for (int i = 0; i < 4000; i++) {
            x = Math.sqrt(x + i) / 1.0001; // HOT burn
        }
        return x;
    }

    static double even(int depth, double x) throws Exception {
        return depth == 0 ? leaf(x) : odd(depth - 1, x) + depth;
    }

    static double odd(int depth, double x) throws Exception {
        double below = even(depth - 1, x + depth);
        return below * 0.5 + depth;
    }

    static double leaf(double x) throws Exception {
        x = burn(x);
        read();
        sort((int) x);
        return x;
    }

    static void read() throws Exception {
        try (FileInputStream in = new FileInputStream("/dev/zero")) {
            for (int i = 0; i < 4; i++) {
                in.read(BYTES);
            }
        }
    }

    static void sort(int seed) {
        for (int i = 0; i < NUMBERS.length; i++) {
            NUMBERS[i] = (i * 31 + seed) & 1023;
        }
        Arrays.sort(NUMBERS, (a, b) -> Integer.compare(a ^ 5, b ^ 5));
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000L;
        double x = 1;
        while (System.nanoTime() < end) {
            x = even(30, x) % 1000;
        }
        System.out.println("done " + (x > -1));
    }
}
