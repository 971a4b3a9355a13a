package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/**
 * Activates {@link io.unfuse.spark.ProfilingPlugin} in the JVMs with the agent, and in no others,
 * without a Spark setting.
 *
 * <p>Patches {@code PluginContainer.apply}, which creates the plugins of a driver or an executor
 * from {@code spark.plugins}: the list that {@code Utils.loadExtensions} returns gets one more
 * element, after the user's. The setting itself must not change: the driver sends it to every
 * executor, and an executor without the agent would fail because of a missing plugin class.
 */
final class PluginContainerPatch implements Patch {
    @Override
    public String[] targets() {
        // Where spark.plugins has loaded the agent, Spark has the plugin already.
        if ("plugin".equals(System.getProperty("unfuse.agent"))) {
            return new String[0];
        }
        return new String[] {"org/apache/spark/internal/plugin/PluginContainer$"};
    }

    @Override
    public MethodVisitor method(
            String owner,
            int access,
            String name,
            String descriptor,
            MethodVisitor next,
            Runnable applied) {
        if (!name.equals("apply")) {
            return next;
        }
        return new Insertion(next, applied) {
            @Override
            void afterCall(String called, String method, String parameters) {
                if (method.equals("loadExtensions")) {
                    call("io/unfuse/spark/ProfilingPlugin", "addTo", "(" + OBJECT + ")" + OBJECT);
                    String list = Type.getReturnType(parameters).getInternalName();
                    mv.visitTypeInsn(Opcodes.CHECKCAST, list);
                }
            }
        };
    }
}
