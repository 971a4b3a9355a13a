package io.unfuse.spark.patch;

import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassTooLargeException;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodTooLargeException;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Keeps the computations of a fused pipeline's operators separate in code that C2 compiles.
 *
 * <p>C2 describes only the last instruction of an expression, and an expression continues as long
 * as each value has one use. So a number that one operator computes and another uses once can count
 * as the other's work. Each number that an operator stores in a local variable gets a second use, a
 * call of {@link Boundary} after the store: the expression ends there, with the line of the
 * operator that computed it.
 *
 * <p>Spark's text does not change, nor do its hash, its lines, and the size that Spark measures:
 * classes are changed when they are loaded.
 */
final class BoundaryCalls {
    private BoundaryCalls() {}

    /** Prefix of the names of all classes of generated code, and of no others. */
    static final String GENERATED = "org/apache/spark/sql/catalyst/expressions/GeneratedClass";

    /**
     * Sizes of bytecode at which HotSpot's behaviour changes, bytes: MaxInlineSize, FreqInlineSize,
     * HugeMethodLimit.
     */
    private static final int[] LIMITS = {35, 325, 8000};

    private static final String OWNER = "io/unfuse/spark/patch/Boundary";

    /**
     * Inserts the calls into one class.
     *
     * @return the changed class, or null if no operator stores a number, or no call fits
     */
    static byte[] insert(byte[] classfile) {
        try {
            return changed(classfile);
        } catch (ClassTooLargeException | MethodTooLargeException full) {
            return null;
        }
    }

    private static byte[] changed(byte[] classfile) {
        ClassReader reader = new ClassReader(classfile);
        Finder finder = new Finder();
        reader.accept(finder, ClassReader.SKIP_FRAMES);
        if (finder.found.isEmpty()) {
            return null;
        }
        Set<Integer> unchanged = new HashSet<>();
        Inserter inserter = write(reader, finder.found, unchanged);
        if (!inserter.overLimit.isEmpty()) {
            unchanged.addAll(inserter.overLimit);
            inserter = write(reader, finder.found, unchanged);
        }
        return inserter.writer().toByteArray();
    }

    private static Inserter write(ClassReader reader, List<BitSet> found, Set<Integer> unchanged) {
        Inserter inserter =
                new Inserter(new ClassWriter(reader, ClassWriter.COMPUTE_MAXS), found, unchanged);
        reader.accept(inserter, 0);
        inserter.measure();
        return inserter;
    }

    /** Finds numbers that operators store: for each method, their indices among all stores. */
    private static final class Finder extends ClassVisitor {
        final List<BitSet> found = new ArrayList<>();
        private int[] operators;

        Finder() {
            super(Opcodes.ASM9);
        }

        @Override
        public void visitSource(String file, String debug) {
            operators = RegionLines.of(file);
        }

        @Override
        public MethodVisitor visitMethod(
                int access, String name, String descriptor, String signature, String[] exceptions) {
            BitSet stores = new BitSet();
            if (operators == null) {
                return null;
            }
            found.add(stores);
            return new Stores(operators, stores);
        }

        @Override
        public void visitEnd() {
            if (found.stream().allMatch(BitSet::isEmpty)) {
                found.clear();
            }
        }
    }

    /** The stores of one method. */
    private static final class Stores extends MethodVisitor {
        private final int[] operators;
        private final BitSet found;
        private int operator = -1;
        private int stores;

        /**
         * Whether the value on top of the stack is a constant or a boolean, which takes little time
         * to compute.
         */
        private boolean isCheap;

        Stores(int[] operators, BitSet found) {
            super(Opcodes.ASM9);
            this.operators = operators;
            this.found = found;
        }

        @Override
        public void visitLineNumber(int line, Label start) {
            operator = line < operators.length ? operators[line] : -1;
        }

        @Override
        public void visitVarInsn(int opcode, int variable) {
            if (opcode >= Opcodes.ISTORE) {
                found.set(stores++, operator >= 0 && opcode != Opcodes.ASTORE && !isCheap);
            }
            isCheap = false;
        }

        @Override
        public void visitInsn(int opcode) {
            isCheap = opcode >= Opcodes.ACONST_NULL && opcode <= Opcodes.DCONST_1;
        }

        @Override
        public void visitIntInsn(int opcode, int operand) {
            isCheap = opcode == Opcodes.BIPUSH || opcode == Opcodes.SIPUSH;
        }

        @Override
        public void visitLdcInsn(Object value) {
            isCheap = true;
        }

        @Override
        public void visitMethodInsn(
                int opcode, String owner, String name, String descriptor, boolean isInterface) {
            isCheap = descriptor.endsWith(")Z");
        }

        @Override
        public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
            isCheap = descriptor.equals("Z");
        }
    }

    /** Inserts a call after each store found. */
    private static final class Inserter extends ClassVisitor {
        private final List<BitSet> found;
        private final Set<Integer> unchanged;
        private final List<Runnable> sizes = new ArrayList<>();

        /** Methods that have exceeded a limit of HotSpot. */
        final Set<Integer> overLimit = new HashSet<>();

        private int methods;

        Inserter(ClassWriter writer, List<BitSet> found, Set<Integer> unchanged) {
            super(Opcodes.ASM9, writer);
            this.found = found;
            this.unchanged = unchanged;
        }

        ClassWriter writer() {
            return (ClassWriter) cv;
        }

        void measure() {
            sizes.forEach(Runnable::run);
        }

        @Override
        public MethodVisitor visitMethod(
                int access, String name, String descriptor, String signature, String[] exceptions) {
            MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
            int method = methods++;
            BitSet stores = found.get(method);
            return stores.isEmpty() || unchanged.contains(method)
                    ? next
                    : new Calls(next, method, stores);
        }

        private final class Calls extends MethodVisitor {
            private final int method;
            private final BitSet wanted;
            private int stores;
            private int added;

            Calls(MethodVisitor next, int method, BitSet wanted) {
                super(Opcodes.ASM9, next);
                this.method = method;
                this.wanted = wanted;
            }

            @Override
            public void visitVarInsn(int opcode, int variable) {
                super.visitVarInsn(opcode, variable);
                if (opcode < Opcodes.ISTORE || !wanted.get(stores++)) {
                    return;
                }
                super.visitVarInsn(opcode - Opcodes.ISTORE + Opcodes.ILOAD, variable);
                String type = String.valueOf("IJFD".charAt(opcode - Opcodes.ISTORE));
                super.visitMethodInsn(
                        Opcodes.INVOKESTATIC, OWNER, "value", "(" + type + ")V", false);
                added += 3 + (variable < 4 ? 1 : variable < 256 ? 2 : 4);
            }

            @Override
            public void visitMaxs(int stack, int locals) {
                Label end = new Label();
                super.visitLabel(end);
                sizes.add(
                        () -> {
                            int after = end.getOffset();
                            for (int limit : LIMITS) {
                                if (after > limit && after - added <= limit) {
                                    overLimit.add(method);
                                }
                            }
                        });
                super.visitMaxs(stack, locals);
            }
        }
    }
}
