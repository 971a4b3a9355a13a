package io.unfuse.spark.patch;

/**
 * Where an operator has computed a number. The agent tells HotSpot's compilers to make no code of
 * these calls, but to keep the value for them ({@code -XX:CompileCommand=blackhole}); only the
 * interpreter calls them.
 */
public final class Boundary {
    private Boundary() {}

    public static void value(int value) {}

    public static void value(long value) {}

    public static void value(float value) {}

    public static void value(double value) {}
}
