package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Adds code to a method: before it returns an object, and at its calls. What a subclass does not
 * override stays as it is. The added code goes to {@code mv}.
 */
abstract class Insertion extends MethodVisitor {
    /** An object without a type of its own, in descriptors. */
    static final String OBJECT = "Ljava/lang/Object;";

    private final Runnable applied;

    /**
     * @param next writes the method
     * @param applied to be called once for each change made
     */
    Insertion(MethodVisitor next, Runnable applied) {
        super(Opcodes.ASM9, next);
        this.applied = applied;
    }

    /** Writes what comes before a return; the object that is returned is on top of the stack. */
    void beforeReturn() {}

    /** Writes what comes before a call; its arguments are on top of the stack. */
    void beforeCall(String owner, String name, String descriptor) {}

    /** Writes what comes after a call; its result is on top of the stack. */
    void afterCall(String owner, String name, String descriptor) {}

    /** Writes something else instead of a call; false if the call is to stay. */
    boolean replaceCall(String owner, String name, String descriptor) {
        return false;
    }

    /** Writes a call of a static method of ours, which is a change made. */
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
