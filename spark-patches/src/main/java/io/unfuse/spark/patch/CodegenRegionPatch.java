package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

import java.util.regex.Pattern;

/**
 * Encloses the generated code of each operator in region comments.
 *
 * <p>Patches the two final methods of the trait {@code CodegenSupport} through which every
 * operator's code passes: {@code produce(ctx, parent)} returns the operator's own loop, and {@code
 * consume(ctx, outputVars, row)} returns the code of its parent for one row. At each return the
 * text goes through {@link Regions}. The columns passed to {@code consume} are often not computed
 * yet: their code is inserted where a parent uses them first, so it is enclosed as well. Only these
 * methods have both the code and the operator: the finished class does not separate operators any
 * more, and Spark's own comments ({@code spark.sql.codegen.comments}) mark beginnings but no ends.
 */
final class CodegenRegionPatch implements Patch {
    private static final String TRAIT = "org/apache/spark/sql/execution/CodegenSupport";

    private static final String REGIONS = "io/unfuse/spark/patch/Regions";

    /** The parameters: the context, and a sequence whose type depends on Scala's version. */
    private static final Pattern TAKES_COLUMNS =
            Pattern.compile("^\\(L[^;]+/CodegenContext;Lscala/collection/[^;]*Seq;");

    @Override
    public String[] targets() {
        return new String[] {TRAIT};
    }

    @Override
    public MethodVisitor method(
            String owner,
            int access,
            String name,
            String descriptor,
            MethodVisitor next,
            Runnable applied) {
        boolean isInstance = (access & (Opcodes.ACC_STATIC | Opcodes.ACC_ABSTRACT)) == 0;
        boolean isWrapped = name.equals("produce") || name.equals("consume");
        if (!isInstance || !isWrapped || !descriptor.endsWith(")Ljava/lang/String;")) {
            return next;
        }
        boolean hasColumns = name.equals("consume") && TAKES_COLUMNS.matcher(descriptor).find();
        return new Insertion(next, applied) {
            @Override
            public void visitCode() {
                super.visitCode();
                if (hasColumns) {
                    mv.visitVarInsn(Opcodes.ALOAD, 0);
                    mv.visitVarInsn(Opcodes.ALOAD, 2);
                    call(REGIONS, "outputs", "(" + OBJECT + OBJECT + ")V");
                }
            }

            @Override
            void beforeReturn() {
                mv.visitVarInsn(Opcodes.ALOAD, 0);
                mv.visitInsn(Opcodes.SWAP);
                call(REGIONS, name, "(" + OBJECT + "Ljava/lang/String;)Ljava/lang/String;");
            }
        };
    }
}
