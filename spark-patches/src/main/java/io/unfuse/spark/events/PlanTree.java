package io.unfuse.spark.events;

import io.unfuse.spark.common.Json;
import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.sql.execution.SparkPlanInfo;
import org.apache.spark.sql.execution.metric.SQLMetricInfo;

import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Writes a plan from Spark's listeners: nodes in pre-order, each with its place in the generated
 * code. The region numbers equal those of {@code Operators}, derived without the operators
 * themselves.
 */
final class PlanTree {
    private static final Method CHILDREN =
            ScalaSeq.method("org.apache.spark.sql.execution.SparkPlanInfo", "children");
    private static final Method METRICS =
            ScalaSeq.method("org.apache.spark.sql.execution.SparkPlanInfo", "metrics");
    private static final Pattern CODEGEN_STAGE = Pattern.compile("WholeStageCodegen \\((\\d+)\\)");

    /** Plans are cut at this depth: nobody reads deeper ones. */
    private static final int DEEPEST = 2000;

    private final Json json;
    private final Deque<Due> due = new ArrayDeque<>();
    private int nodes;

    private PlanTree(Json json) {
        this.json = json;
    }

    /** The current codegen stage: its number, and the next free region. */
    private static final class Stage {
        final long number;
        int regions;

        Stage(long number) {
            this.number = number;
        }
    }

    /**
     * A node to write. A list of these replaces recursion, because plans can be too deep for the
     * thread's stack.
     */
    private static final class Due {
        final SparkPlanInfo plan;
        final Integer parent;
        final Stage outer;
        final int depth;

        Due(SparkPlanInfo plan, Integer parent, Stage outer, int depth) {
            this.plan = plan;
            this.parent = parent;
            this.outer = outer;
            this.depth = depth;
        }
    }

    /** Adds the array {@code nodes} to {@code json}. */
    static void write(Json json, SparkPlanInfo root) throws ReflectiveOperationException {
        json.array("nodes");
        PlanTree tree = new PlanTree(json);
        tree.due.push(new Due(root, null, null, 0));
        while (!tree.due.isEmpty()) {
            tree.node(tree.due.pop());
        }
        json.endArray();
    }

    private void node(Due node) throws ReflectiveOperationException {
        int number = nodes++;
        String name = node.plan.nodeName();
        Matcher codegen = CODEGEN_STAGE.matcher(name);
        Stage stage = codegen.matches() ? new Stage(Long.parseLong(codegen.group(1))) : node.outer;
        json.item()
                .field("node", number)
                .field("parent", node.parent)
                .field("operator", name)
                .field("detail", node.plan.simpleString())
                .field("codegen_stage", stage == null ? null : Long.valueOf(stage.number))
                .field("region", stage == null ? null : Integer.valueOf(stage.regions++));
        metrics(node.plan);
        json.end();
        if (node.depth >= DEEPEST) {
            return;
        }
        boolean isFused = stage != null && !name.equals("InputAdapter");
        List<Object> children = ScalaSeq.get(node.plan, CHILDREN);
        // The first child is written next, with its subtree.
        for (int at = children.size() - 1; at >= 0; at--) {
            SparkPlanInfo next = (SparkPlanInfo) children.get(at);
            due.push(
                    new Due(
                            next,
                            number,
                            isFused && !isSubquery(next) ? stage : null,
                            node.depth + 1));
        }
    }

    private void metrics(SparkPlanInfo plan) throws ReflectiveOperationException {
        json.array("metrics");
        List<Object> metrics = ScalaSeq.get(plan, METRICS);
        for (Object each : metrics) {
            SQLMetricInfo metric = (SQLMetricInfo) each;
            json.item()
                    .field("id", metric.accumulatorId())
                    .field("name", metric.name())
                    .field("kind", metric.metricType())
                    .end();
        }
        json.endArray();
    }

    /**
     * Spark lists the subqueries of an operator after its children; they run separately, outside
     * the operator's stage.
     */
    private static boolean isSubquery(SparkPlanInfo plan) {
        String name = plan.nodeName();
        return name.startsWith("Subquery") || name.startsWith("ReusedSubquery");
    }
}
