package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Adds line tables and a unique source file name to generated classes.
 *
 * <p>Patches the calls that start a compilation:
 *
 * <ul>
 *   <li>{@code ClassBodyEvaluator.cook("generated.java", body)}, Janino, in {@code
 *       CodeGenerator.doCompile} (Spark 3.5) or {@code JaninoCodeCompiler.compile} (Spark 4.3);
 *   <li>{@code JavaCompiler.getTask(...)}, the JDK's compiler, in {@code JdkCodeCompiler.doCompile}
 *       (Spark 4.3 with {@code spark.sql.codegen.compiler}).
 * </ul>
 *
 * They become calls of {@link SourceTap}. Spark compiles without debugging information, and
 * Janino's own switch for it is a property of the whole JVM that also writes every text to a
 * temporary file. Size limits are not affected: Spark measures code lengths, which exclude tables.
 */
final class CodeCompilerPatch implements Patch {
    private static final String PACKAGE = "org/apache/spark/sql/catalyst/expressions/codegen/";
    private static final String CODE_GENERATOR = PACKAGE + "CodeGenerator$";
    private static final String CODE_AND_COMMENT = "L" + PACKAGE + "CodeAndComment;";
    private static final String TAP = "io/unfuse/spark/patch/SourceTap";
    private static final String EVALUATOR = "org/codehaus/janino/ClassBodyEvaluator";
    private static final String JAVA_COMPILER = "javax/tools/JavaCompiler";

    @Override
    public String[] targets() {
        return new String[] {
            CODE_GENERATOR, PACKAGE + "JaninoCodeCompiler$", PACKAGE + "JdkCodeCompiler$"
        };
    }

    @Override
    public boolean isExpectedIn(String owner) {
        // Spark 4.3 moved the compilation out of CodeGenerator.
        return !owner.equals(CODE_GENERATOR);
    }

    @Override
    public MethodVisitor method(
            String owner,
            int access,
            String name,
            String descriptor,
            MethodVisitor next,
            Runnable applied) {
        return new Insertion(next, applied) {
            @Override
            boolean replaceCall(String called, String method, String parameters) {
                if (called.equals(EVALUATOR)
                        && method.equals("cook")
                        && parameters.equals("(Ljava/lang/String;Ljava/lang/String;)V")) {
                    call(TAP, "cook", "(L" + EVALUATOR + ";Ljava/lang/String;Ljava/lang/String;)V");
                    return true;
                }
                if (called.equals(JAVA_COMPILER)
                        && method.equals("getTask")
                        && descriptor.startsWith("(" + CODE_AND_COMMENT)
                        && (access & Opcodes.ACC_STATIC) == 0) {
                    // The text is not enough: its hash must be that of Spark's body, the method's
                    // first parameter.
                    mv.visitVarInsn(Opcodes.ALOAD, 1);
                    int end = parameters.indexOf(')');
                    String arguments = "L" + JAVA_COMPILER + ";" + parameters.substring(1, end);
                    call(TAP, "task", "(" + arguments + OBJECT + parameters.substring(end));
                    return true;
                }
                return false;
            }
        };
    }
}
