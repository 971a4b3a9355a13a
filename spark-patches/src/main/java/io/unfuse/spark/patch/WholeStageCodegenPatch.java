package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Tells which operators a generated class came from.
 *
 * <p>Patches {@code WholeStageCodegenExec.doCodeGen()}: before it returns, the plan and the
 * generated code go to {@link CodegenTap}. This is the one place where the text that will be
 * compiled and the operators in it are known together; the plan in the event log has neither, and
 * the executors see the text alone.
 */
final class WholeStageCodegenPatch implements Patch {
    @Override
    public String[] targets() {
        return new String[] {"org/apache/spark/sql/execution/WholeStageCodegenExec"};
    }

    @Override
    public MethodVisitor method(
            String owner,
            int access,
            String name,
            String descriptor,
            MethodVisitor next,
            Runnable applied) {
        if (!name.equals("doCodeGen") || !descriptor.equals("()Lscala/Tuple2;")) {
            return next;
        }
        return new Insertion(next, applied) {
            @Override
            void beforeReturn() {
                mv.visitInsn(Opcodes.DUP);
                mv.visitVarInsn(Opcodes.ALOAD, 0);
                mv.visitInsn(Opcodes.SWAP);
                call("io/unfuse/spark/patch/CodegenTap", "generated", "(" + OBJECT + OBJECT + ")V");
            }
        };
    }
}
