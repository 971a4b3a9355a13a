package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;

/** One place in Spark that is changed while its class is loaded. */
interface Patch {
    /** Internal names of the classes it may change. */
    String[] targets();

    /**
     * The visitor that changes one method, or {@code next} itself for a method that stays as it is.
     *
     * @param owner internal name of the class
     * @param next writes the method
     * @param applied to be called once for each change made
     */
    MethodVisitor method(
            String owner,
            int access,
            String name,
            String descriptor,
            MethodVisitor next,
            Runnable applied);

    /**
     * True if every Spark that has the class {@code owner} has the place in it, so that not finding
     * it is worth a message.
     */
    default boolean isExpectedIn(String owner) {
        return true;
    }
}
