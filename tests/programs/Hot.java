/**
 * Its true profile: `sum` about twice `mix`; both in lines marked below, nothing else of weight.
 * Arguments: milliseconds and, if it is to work no less on a busy machine, rounds at least.
 */
public class Hot {
    static volatile long sink;

    static double sum(double x) {
        for (int i = 0; i < 600; i++) {
            x = Math.sqrt(x + i) / 1.0001; // HOT sum
        }
        return x;
    }

    static double mix(double x) {
        for (int i = 0; i < 300; i++) {
            x = Math.sqrt(x + 2 * i) / 1.0001; // HOT mix
        }
        return x;
    }

    public static void main(String[] args) {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000L;
        long least = args.length > 1 ? Long.parseLong(args[1]) : 0;
        double x = 1;
        for (long round = 0; round < least || System.nanoTime() < end; round++) {
            x = sum(x);
            x += mix(x);
        }
        sink = (long) x;
        System.out.println("true profile: sum " + args[0]);
    }
}
