package io.unfuse.spark;

import org.apache.spark.sql.execution.CodegenSupport;

/**
 * Puts region comments around generated code. Called from the patched {@code CodegenSupport.produce} and {@code consume}; the
 * parameters are plain objects so that the patched bytecode needs no casts.
 *
 * <p>Only comments and line breaks are added. Whatever goes wrong, the code comes back unchanged.
 */
public final class Regions {
    private Regions() {}

    /** False only in tests that compare with what Spark generates by itself. */
    static volatile boolean enabled = true;

    /** Encloses the code with which {@code operator} produces its rows. */
    public static String produce(Object operator, String code) {
        try {
            return enclose("PRODUCE_", Operators.region((CodegenSupport) operator), code);
        } catch (Throwable error) {
            Agent.failed("marking produced code", error);
            return code;
        }
    }

    /** Encloses the code with which the parent of {@code child} consumes the rows of {@code child}. */
    public static String consume(Object child, String code) {
        try {
            CodegenSupport parent = ((CodegenSupport) child).parent();
            return parent == null ? code : enclose("CONSUME_", Operators.region(parent), code);
        } catch (Throwable error) {
            Agent.failed("marking consumed code", error);
            return code;
        }
    }

    private static String enclose(String kind, int region, String code) {
        // Operators test for empty code to leave out whole statements, so empty stays empty.
        if (region < 0 || code == null || code.isBlank() || !enabled) {
            return code;
        }
        String name = kind + region;
        return "\n/* BeginCodeRegion(" + name + ") */\n" + code + "\n/* EndCodeRegion(" + name + ") */\n";
    }
}
