package io.unfuse.spark.patch;

import io.unfuse.spark.common.Agent;

import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

import java.util.LinkedHashSet;
import java.util.Set;

/**
 * All load-time patches, for the agent when classes are loaded. Each patch inserts calls into
 * straight-line code and does not change the stack, so the frames of the original class stay valid,
 * and no class of Spark must be loaded to compute new ones.
 */
public final class Patches {
    private Patches() {}

    private static final Patch[] ALL = {
        new CodegenRegionPatch(),
        new WholeStageCodegenPatch(),
        new CodeCompilerPatch(),
        new PluginContainerPatch(),
        new PythonWorkerPatch(),
        new RecordPatch(),
    };

    /** Internal names (with slashes) of the classes to pass to {@link #patch}. */
    public static String[] targets() {
        Set<String> names = new LinkedHashSet<>();
        for (Patch patch : ALL) {
            for (String name : patch.targets()) {
                names.add(name);
            }
        }
        return names.toArray(new String[0]);
    }

    /**
     * Patches one class.
     *
     * @param internalName its name with slashes
     * @param classfile the original class; not modified
     * @return the changed class, or null to load it unchanged. Never throws.
     */
    public static byte[] patch(String internalName, byte[] classfile) {
        try {
            if (internalName.startsWith(BoundaryCalls.GENERATED)) {
                return BoundaryCalls.insert(classfile);
            }
            byte[] result = null;
            for (Patch patch : ALL) {
                for (String target : patch.targets()) {
                    if (target.equals(internalName)) {
                        byte[] changed =
                                apply(patch, internalName, result == null ? classfile : result);
                        result = changed == null ? result : changed;
                    }
                }
            }
            return result;
        } catch (Throwable error) {
            Agent.failed("patching " + internalName, error);
            return null;
        }
    }

    private static byte[] apply(Patch patch, String owner, byte[] classfile) {
        ClassReader reader = new ClassReader(classfile);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        Counter applied = new Counter();
        reader.accept(
                new ClassVisitor(Opcodes.ASM9, writer) {
                    @Override
                    public MethodVisitor visitMethod(
                            int access,
                            String name,
                            String descriptor,
                            String signature,
                            String[] exceptions) {
                        MethodVisitor next =
                                super.visitMethod(access, name, descriptor, signature, exceptions);
                        return patch.method(owner, access, name, descriptor, next, applied);
                    }
                },
                0);
        if (applied.count == 0) {
            if (patch.isExpectedIn(owner)) {
                Agent.log(
                        owner
                                + " differs from that of every supported Spark (3.5 to 4.3), so "
                                + patch.getClass().getSimpleName()
                                + " does not change it; the profile has less detail");
            }
            return null;
        }
        return writer.toByteArray();
    }

    private static final class Counter implements Runnable {
        int count;

        @Override
        public void run() {
            count++;
        }
    }
}
