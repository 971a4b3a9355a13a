package io.unfuse.spark.patch;

import io.unfuse.spark.records.RecordTap;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Passes inputs and outputs of stages to {@link RecordTap}: the iterators that {@code RDD.iterator}
 * returns (sources and cached RDDs), the iterators that {@code ResultTask} passes to the action and
 * {@code ShuffleWriteProcessor} to the shuffle, and the values that {@code BlockStoreShuffleReader}
 * has merged by key.
 */
final class RecordPatch implements Patch {
    private static final String TAP = "io/unfuse/spark/records/RecordTap";
    private static final String ITERATOR = "scala/collection/Iterator";
    private static final String RDD = "org/apache/spark/rdd/RDD";
    private static final String RESULT = "org/apache/spark/scheduler/ResultTask";
    private static final String SHUFFLE = "org/apache/spark/shuffle/ShuffleWriteProcessor";
    private static final String READER = "org/apache/spark/shuffle/BlockStoreShuffleReader";
    private static final String OF_RDD =
            "(Lorg/apache/spark/Partition;Lorg/apache/spark/TaskContext;)Lscala/collection/Iterator;";

    @Override
    public String[] targets() {
        return RecordTap.isOn() ? new String[] {RDD, RESULT, SHUFFLE, READER} : new String[0];
    }

    @Override
    public MethodVisitor method(
            String owner,
            int access,
            String name,
            String descriptor,
            MethodVisitor next,
            Runnable applied) {
        switch (owner) {
            case RDD:
                if (descriptor.equals(OF_RDD)
                        && (name.equals("iterator") || name.equals("computeOrReadCheckpoint"))) {
                    return ofRdd(next, name.equals("iterator") ? "Source" : "Cached", applied);
                }
                return next;
            case RESULT:
                return name.equals("runTask") ? ofResult(next, applied) : next;
            case SHUFFLE:
                return name.equals("write") ? ofShuffle(next, applied) : next;
            default:
                return name.equals("read") ? ofMerge(next, applied) : next;
        }
    }

    /** Calls {@link RecordTap} at the method's begin, and with its result. */
    private static MethodVisitor ofRdd(MethodVisitor next, String what, Runnable applied) {
        return new Insertion(next, applied) {
            @Override
            public void visitCode() {
                super.visitCode();
                mv.visitVarInsn(Opcodes.ALOAD, 2);
                call(TAP, "begin" + what, "(" + OBJECT + ")V");
            }

            @Override
            void beforeReturn() {
                mv.visitVarInsn(Opcodes.ALOAD, 0);
                mv.visitVarInsn(Opcodes.ALOAD, 1);
                mv.visitVarInsn(Opcodes.ALOAD, 2);
                call(TAP, "end" + what, "(" + OBJECT + OBJECT + OBJECT + OBJECT + ")" + OBJECT);
                mv.visitTypeInsn(Opcodes.CHECKCAST, ITERATOR);
            }
        };
    }

    private static MethodVisitor ofResult(MethodVisitor next, Runnable applied) {
        return new Insertion(next, applied) {
            @Override
            void afterCall(String called, String method, String parameters) {
                if (method.equals("iterator") && parameters.equals(OF_RDD)) {
                    call(TAP, "result", "(" + OBJECT + ")" + OBJECT);
                    mv.visitTypeInsn(Opcodes.CHECKCAST, ITERATOR);
                }
            }
        };
    }

    /**
     * Both {@code write(rdd, dependency, …)} of Spark 3 and {@code write(records, dependency, …)}
     * of Spark 4.
     */
    private static MethodVisitor ofShuffle(MethodVisitor next, Runnable applied) {
        return new Insertion(next, applied) {
            @Override
            void beforeCall(String called, String method, String parameters) {
                if (method.equals("write") && parameters.equals("(L" + ITERATOR + ";)V")) {
                    mv.visitVarInsn(Opcodes.ALOAD, 2);
                    call(TAP, "shuffle", "(" + OBJECT + OBJECT + ")" + OBJECT);
                    mv.visitTypeInsn(Opcodes.CHECKCAST, ITERATOR);
                }
            }
        };
    }

    private static MethodVisitor ofMerge(MethodVisitor next, Runnable applied) {
        return new Insertion(next, applied) {
            @Override
            void beforeCall(String called, String method, String parameters) {
                if (called.equals("org/apache/spark/Aggregator")
                        && method.startsWith("combine")
                        && parameters.startsWith(
                                "(L" + ITERATOR + ";Lorg/apache/spark/TaskContext;)")) {
                    // The iterator is below the context.
                    mv.visitInsn(Opcodes.SWAP);
                    call(TAP, "merged", "(" + OBJECT + ")" + OBJECT);
                    mv.visitTypeInsn(Opcodes.CHECKCAST, ITERATOR);
                    mv.visitInsn(Opcodes.SWAP);
                }
            }
        };
    }
}
