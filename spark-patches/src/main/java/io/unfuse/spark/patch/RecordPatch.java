package io.unfuse.spark.patch;

import io.unfuse.spark.records.RecordTap;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Taps what goes into stages and out of them, for {@link RecordTap}: the iterators that {@code
 * RDD.iterator} returns (sources and cached RDDs), what {@code ResultTask} hands to the action,
 * what {@code ShuffleWriteProcessor} hands to the shuffle, and what {@code BlockStoreShuffleReader}
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

    /** The tap is told when the method begins, and gets what it returns. */
    private static MethodVisitor ofRdd(MethodVisitor next, String what, Runnable applied) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitCode() {
                super.visitCode();
                super.visitVarInsn(Opcodes.ALOAD, 2);
                super.visitMethodInsn(
                        Opcodes.INVOKESTATIC, TAP, "begin" + what, "(Ljava/lang/Object;)V", false);
                applied.run();
            }

            @Override
            public void visitInsn(int opcode) {
                if (opcode == Opcodes.ARETURN) {
                    super.visitVarInsn(Opcodes.ALOAD, 0);
                    super.visitVarInsn(Opcodes.ALOAD, 1);
                    super.visitVarInsn(Opcodes.ALOAD, 2);
                    super.visitMethodInsn(
                            Opcodes.INVOKESTATIC,
                            TAP,
                            "end" + what,
                            "(Ljava/lang/Object;Ljava/lang/Object;Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;",
                            false);
                    super.visitTypeInsn(Opcodes.CHECKCAST, ITERATOR);
                }
                super.visitInsn(opcode);
            }
        };
    }

    private static MethodVisitor ofResult(MethodVisitor next, Runnable applied) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(
                    int opcode,
                    String called,
                    String method,
                    String parameters,
                    boolean isInterface) {
                super.visitMethodInsn(opcode, called, method, parameters, isInterface);
                if (method.equals("iterator") && parameters.equals(OF_RDD)) {
                    super.visitMethodInsn(
                            Opcodes.INVOKESTATIC,
                            TAP,
                            "result",
                            "(Ljava/lang/Object;)Ljava/lang/Object;",
                            false);
                    super.visitTypeInsn(Opcodes.CHECKCAST, ITERATOR);
                    applied.run();
                }
            }
        };
    }

    /**
     * Both {@code write(rdd, dependency, …)} of Spark 3 and {@code write(records, dependency, …)}
     * of Spark 4.
     */
    private static MethodVisitor ofShuffle(MethodVisitor next, Runnable applied) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(
                    int opcode,
                    String called,
                    String method,
                    String parameters,
                    boolean isInterface) {
                if (method.equals("write") && parameters.equals("(L" + ITERATOR + ";)V")) {
                    super.visitVarInsn(Opcodes.ALOAD, 2);
                    super.visitMethodInsn(
                            Opcodes.INVOKESTATIC,
                            TAP,
                            "shuffle",
                            "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;",
                            false);
                    super.visitTypeInsn(Opcodes.CHECKCAST, ITERATOR);
                    applied.run();
                }
                super.visitMethodInsn(opcode, called, method, parameters, isInterface);
            }
        };
    }

    private static MethodVisitor ofMerge(MethodVisitor next, Runnable applied) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(
                    int opcode,
                    String called,
                    String method,
                    String parameters,
                    boolean isInterface) {
                if (called.equals("org/apache/spark/Aggregator")
                        && method.startsWith("combine")
                        && parameters.startsWith(
                                "(L" + ITERATOR + ";Lorg/apache/spark/TaskContext;)")) {
                    // The iterator is below the context.
                    super.visitInsn(Opcodes.SWAP);
                    super.visitMethodInsn(
                            Opcodes.INVOKESTATIC,
                            TAP,
                            "merged",
                            "(Ljava/lang/Object;)Ljava/lang/Object;",
                            false);
                    super.visitTypeInsn(Opcodes.CHECKCAST, ITERATOR);
                    super.visitInsn(Opcodes.SWAP);
                    applied.run();
                }
                super.visitMethodInsn(opcode, called, method, parameters, isInterface);
            }
        };
    }
}
