package io.unfuse.spark.patch;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.sql.catalyst.expressions.codegen.Block;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.execution.CodegenSupport;

import java.util.List;

/**
 * Encloses generated code in region comments. Called from the patched {@code
 * CodegenSupport.produce} and {@code consume}; the parameters are plain objects, so the patched
 * bytecode needs no casts.
 *
 * <p>It adds only comments and line breaks. After any failure it returns the code unchanged.
 */
public final class Regions {
    private Regions() {}

    /** False only in tests that compare with Spark's own code. */
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

    /**
     * Encloses the code with which the parent of {@code child} consumes the rows of {@code child}.
     */
    public static String consume(Object child, String code) {
        try {
            CodegenSupport parent = ((CodegenSupport) child).parent();
            return parent == null ? code : enclose("CONSUME_", Operators.region(parent), code);
        } catch (Throwable error) {
            Agent.failed("marking consumed code", error);
            return code;
        }
    }

    /**
     * Encloses code that computes columns of {@code operator} later: it is inserted where they are
     * used first, in another operator's code.
     */
    public static void outputs(Object operator, Object columns) {
        try {
            int region =
                    columns == null || !enabled ? -1 : Operators.region((CodegenSupport) operator);
            if (region < 0) {
                return;
            }
            String name = "PRODUCE_" + region;
            for (Object each : ScalaSeq.toList(columns)) {
                ExprCode column = (ExprCode) each;
                if (!column.code().toString().isBlank()) {
                    column.code_$eq(enclose(name, column.code()));
                }
            }
        } catch (Throwable error) {
            Agent.failed("marking columns", error);
        }
    }

    private static Block enclose(String name, Block code) throws ReflectiveOperationException {
        Object parts = ScalaSeq.fromList(List.of(begin(name), end(name)));
        // Its signature names Scala's Seq.
        return (Block)
                CodeBlock.class.getConstructors()[0].newInstance(
                        parts, ScalaSeq.fromList(List.of(code)));
    }

    private static String begin(String name) {
        return "\n/* BeginCodeRegion(" + name + ") */\n";
    }

    private static String end(String name) {
        return "\n/* EndCodeRegion(" + name + ") */\n";
    }

    private static String enclose(String kind, int region, String code) {
        // Operators test for empty code to omit whole statements, so empty code stays empty.
        if (region < 0 || code == null || code.isBlank() || !enabled) {
            return code;
        }
        String name = kind + region;
        return begin(name) + code + end(name);
    }
}
