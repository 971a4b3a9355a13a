package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Adds code to a method: before it returns an object, and at its calls. Subclasses override the
 * places that they change. The added code is written to {@code mv}.
 */
abstract class Insertion extends MethodVisitor {
    /** The type Object in descriptors. */
    static final String OBJECT = "Ljava/lang/Object;";

    private final Runnable applied;

    /**
     * @param next writes the method
     * @param applied called once for each change
     */
    Insertion(MethodVisitor next, Runnable applied) {
        super(Opcodes.ASM9, next);
        this.applied = applied;
    }

    /** Writes code before a return; the returned object is on top of the stack. */
    void beforeReturn() {}

    /** Writes code before a call; its arguments are on top of the stack. */
    void beforeCall(String owner, String name, String descriptor) {}

    /** Writes code after a call; its result is on top of the stack. */
    void afterCall(String owner, String name, String descriptor) {}

    /** Writes a replacement of a call; false keeps the call. */
    boolean replaceCall(String owner, String name, String descriptor) {
        return false;
    }

    /** Writes a call of one of our static methods, and counts it as a change. */
    final void call(String owner, String name, String descriptor) {
        mv.visitMethodInsn(Opcodes.INVOKESTATIC, owner, name, descriptor, false);
        applied.run();
    }

    @Override
    public final void visitInsn(int opcode) {
        if (opcode == Opcodes.ARETURN) {
            beforeReturn();
        }
        super.visitInsn(opcode);
    }

    @Override
    public final void visitMethodInsn(
            int opcode, String owner, String name, String descriptor, boolean isInterface) {
        if (replaceCall(owner, name, descriptor)) {
            return;
        }
        beforeCall(owner, name, descriptor);
        super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
        afterCall(owner, name, descriptor);
    }
}
