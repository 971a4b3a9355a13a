package io.unfuse.spark.ui;

import io.unfuse.spark.common.UnfuseProgram;

import org.apache.spark.ui.SparkUITab;

import scala.Function0;
import scala.Option;
import scala.xml.Unparsed;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.function.Supplier;

/**
 * The content of the tab's two pages. The request is an {@code Object}, because its package depends
 * on the version of Spark.
 */
final class OperatorsPages {
    private final SparkUITab tab;
    private final ReportProgram program;
    private final Supplier<String> app;

    OperatorsPages(SparkUITab tab, ReportProgram program, Supplier<String> app) {
        this.tab = tab;
        this.program = program;
        this.app = app;
    }

    /** The page in Spark's frame. It loads at once; the report in it takes longer. */
    Object frame(Object request) throws ReflectiveOperationException {
        String missing = program.missing();
        String content =
                missing != null
                        ? "<p>" + escaped(missing) + "</p>"
                        : "<p>CPU time of each query's operators, from the profile in <code>"
                                + escaped(program.dir())
                                + "</code>. A running application's last seconds are not in it yet. "
                                + "<a href=\"report/\" target=\"unfuse-report\">Refresh</a> "
                                + "<a href=\"report/\" target=\"_blank\">Open alone</a></p>"
                                + "<iframe name=\"unfuse-report\" title=\"unfuse report\" src=\"report/\" "
                                + "style=\"width: 100%; height: calc(100vh - 11rem); min-height: 30rem; border: 1px solid #ccc\">"
                                + "</iframe>";
        return inSparksFrame(request, content);
    }

    /** The report itself, a complete page. */
    Object report(Object request) {
        String page;
        try {
            page = withNonce(program.report(app.get()));
        } catch (UnfuseProgram.Failure failure) {
            page =
                    "<html lang=\"en\"><head><meta charset=\"utf-8\"><title>unfuse</title></head><body><p>"
                            + escaped(failure.getMessage())
                            + "</p></body></html>";
        }
        // Spark adds a document type.
        String type = "<!doctype html>";
        return new Unparsed(page.startsWith(type) ? page.substring(type.length()) : page);
    }

    /** Spark 4 only allows scripts with the nonce of the response. */
    private static String withNonce(String page) {
        try {
            Class<?> holder = Class.forName("org.apache.spark.ui.CspNonce$");
            Object nonce = holder.getMethod("get").invoke(holder.getField("MODULE$").get(null));
            // Blocks of data have attributes; the first script without any is the report's only
            // one.
            int script = page.indexOf("<script>");
            if (nonce == null || script < 0) {
                return page;
            }
            return page.substring(0, script)
                    + "<script nonce=\""
                    + escaped(nonce.toString())
                    + "\">"
                    + page.substring(script + "<script>".length());
        } catch (ReflectiveOperationException sparkHasNone) {
            return page;
        }
    }

    /**
     * {@code UIUtils.headerSparkPage}, which has got more parameters over time: unknown ones keep
     * their defaults.
     */
    private Object inSparksFrame(Object request, String content)
            throws ReflectiveOperationException {
        Class<?> utils = Class.forName("org.apache.spark.ui.UIUtils$");
        for (Method method : utils.getMethods()) {
            if (!method.getName().equals("headerSparkPage")) {
                continue;
            }
            Class<?>[] types = method.getParameterTypes();
            Object[] arguments = new Object[types.length];
            for (int i = 0; i < types.length; i++) {
                if (types[i].isInstance(request)) {
                    arguments[i] = request;
                } else if (types[i] == String.class) {
                    arguments[i] = "Operators";
                } else if (types[i] == Function0.class) {
                    Function0<Object> body = () -> new Unparsed(content);
                    arguments[i] = body;
                } else if (types[i].isInstance(tab)) {
                    arguments[i] = tab;
                } else if (types[i] == Option.class) {
                    arguments[i] = Option.empty();
                } else if (types[i] == boolean.class) {
                    arguments[i] = false;
                }
            }
            try {
                return method.invoke(utils.getField("MODULE$").get(null), arguments);
            } catch (InvocationTargetException e) {
                throw new IllegalStateException(
                        "Spark cannot make the page: " + e.getCause(), e.getCause());
            }
        }
        throw new NoSuchMethodException("UIUtils.headerSparkPage");
    }

    static String escaped(String text) {
        return text.replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }
}
