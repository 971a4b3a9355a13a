/** Does the work of {@link Hot} for a time. Prints whether the wall clock was set back. */
public class Clock {
    public static void main(String[] args) {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000L;
        long wall = System.currentTimeMillis();
        boolean back = false;
        double x = 1;
        while (System.nanoTime() < end) {
            x = Hot.sum(x);
            x += Hot.mix(x);
            long now = System.currentTimeMillis();
            back |= now < wall;
            wall = now;
        }
        Hot.sink = (long) x;
        System.out.println("the clock was set back: " + back);
    }
}
