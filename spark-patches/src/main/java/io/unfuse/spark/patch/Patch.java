package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;

/** A place in Spark that is changed when its class is loaded. */
interface Patch {
    /** Internal names of the classes it may change. */
    String[] targets();

    /**
     * The visitor that changes one method, or {@code next} itself if the method does not change.
     *
     * @param owner internal name of the class
     * @param next writes the method
     * @param applied called once for each change
     */
    MethodVisitor method(
            String owner,
            int access,
            String name,
            String descriptor,
            MethodVisitor next,
            Runnable applied);

    /**
     * Whether every Spark with the class {@code owner} has the place, so that a missing place is
     * worth a message.
     */
    default boolean isExpectedIn(String owner) {
        return true;
    }
}
