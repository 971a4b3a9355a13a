package io.unfuse.spark.patch;

/**
 * Called where an operator has computed a number. The agent makes HotSpot's compilers generate no
 * code for these calls, but keep the value for them ({@code -XX:CompileCommand=blackhole}); only
 * the interpreter calls them.
 */
public final class Boundary {
    private Boundary() {}

    public static void value(int value) {}

    public static void value(long value) {}

    public static void value(float value) {}

    public static void value(double value) {}
}
