/** Long loops in main, which is called once: compiled code must replace the interpreter's frame. */
public class Osr {
    public static void main(String[] args) {
        double x = 1;
        int rounds = Integer.parseInt(args[0]);
        long from = Truth.now();
        for (int i = 0; i < rounds * 2; i++) {
            x = Math.sqrt(x + i) / 1.0001; // HOT first
        }
        long between = Truth.now();
        Truth.spent("HOT first", between - from);
        for (int i = 0; i < rounds; i++) {
            x = Math.sqrt(x + 2 * i) / 1.0001; // HOT second
        }
        Truth.spent("HOT second", Truth.now() - between);
        Truth.sink = (long) x;
        Truth.print();
    }
}
