package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Reports the operators of each generated class.
 *
 * <p>Patches {@code WholeStageCodegenExec.doCodeGen()}: before it returns, the plan and the
 * generated code are passed to {@link CodegenTap}. Only here are the text to compile and its
 * operators known together; the plan in the event log has neither, and executors only have the
 * text.
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
