import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;

/**
 * An agent that makes Spark put the consume code of every operator into a method of its own (MLSS of the thesis).
 *
 * <p>{@code CodegenSupport.consume} does so only where the operator above uses all columns that it is given, because all of
 * them must have been computed before the method is called. The agent makes {@code consume} take {@code outputSet()} for the
 * {@code usedInputs} of the operator above: then all columns are computed early, and the condition always holds.
 */
public final class SplitAll implements ClassFileTransformer {
    private static final String TRAIT = "org/apache/spark/sql/execution/CodegenSupport";
    private static final String PLAN = "org/apache/spark/sql/catalyst/plans/QueryPlan";
    private static final String SET = "()Lorg/apache/spark/sql/catalyst/expressions/AttributeSet;";
    /** In {@code consume}: for the columns that are computed early, and (in a lambda) for the condition. */
    private static final int PLACES = 2;

    private int patched;

    /** Called by the JVM before Spark starts. */
    public static void premain(String options, Instrumentation instrumentation) {
        instrumentation.addTransformer(new SplitAll());
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> before, ProtectionDomain domain, byte[] bytes) {
        if (!TRAIT.equals(name)) {
            return null;
        }
        byte[] changed = null;
        try {
            changed = patch(bytes);
        } catch (RuntimeException e) {
            e.printStackTrace();
        }
        // The JVM would go on with a class as it was, and the measurement would be of another thing.
        if (patched != PLACES) {
            System.err.println("SplitAll changed " + patched + " places in " + name + ", not " + PLACES);
            Runtime.getRuntime().halt(1);
        }
        return changed;
    }

    private byte[] patch(byte[] bytes) {
        ClassReader reader = new ClassReader(bytes);
        ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
                MethodVisitor next = super.visitMethod(access, name, descriptor, signature, thrown);
                boolean ofConsume = name.equals("consume") || name.startsWith("$anonfun$consume$");
                return ofConsume ? new UsesAll(next) : next;
            }
        }, 0);
        return writer.toByteArray();
    }

    /** Replaces {@code x.usedInputs()} by {@code this.outputSet()}. */
    private final class UsesAll extends MethodVisitor {
        UsesAll(MethodVisitor next) {
            super(Opcodes.ASM9, next);
        }

        @Override
        public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
            if (!owner.equals(TRAIT) || !name.equals("usedInputs")) {
                super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
                return;
            }
            super.visitInsn(Opcodes.POP);
            super.visitVarInsn(Opcodes.ALOAD, 0);
            super.visitTypeInsn(Opcodes.CHECKCAST, PLAN);
            super.visitMethodInsn(Opcodes.INVOKEVIRTUAL, PLAN, "outputSet", SET, false);
            patched++;
        }
    }
}
