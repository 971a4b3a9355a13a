package io.unfuse.spark.patch;

import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.WholeStageCodegenExec;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/**
 * Region numbers of the operators that one generated class fuses: their pre-order position below
 * the {@link WholeStageCodegenExec}, which is 0 itself. An {@link InputAdapter} has a number (it
 * produces the rows that enter the stage), but the nodes below it have none.
 *
 * <p>The position depends only on the shape of the plan, so planning a query twice gives the same
 * text, and Spark's compile cache still works. {@code PlanTree} derives the same numbers from the
 * plan in the event log.
 */
final class Operators {
    private Operators() {}

    /** Longer parent chains are taken for cycles. */
    private static final int DEEPEST = 100_000;

    private static final Method CHILDREN =
            ScalaSeq.method("org.apache.spark.sql.catalyst.trees.TreeNode", "children");

    /** The region number of {@code operator} in its stage, or -1 if it is in none. */
    static int region(CodegenSupport operator) throws ReflectiveOperationException {
        CodegenSupport root = operator;
        for (int depth = 0; !(root instanceof WholeStageCodegenExec); depth++) {
            root = root.parent();
            if (root == null || depth > DEEPEST) {
                return -1;
            }
        }
        List<Object> fused = fused((WholeStageCodegenExec) root);
        for (int i = 0; i < fused.size(); i++) {
            if (fused.get(i) == operator) {
                return i;
            }
        }
        return -1;
    }

    /** The operators of a stage, each at the index of its region number. */
    static List<Object> fused(WholeStageCodegenExec stage) throws ReflectiveOperationException {
        List<Object> found = new ArrayList<>();
        // A list instead of recursion: there are plans with thousands of operators, and this runs
        // on the job's own stack.
        List<Object> open = new ArrayList<>();
        open.add(stage);
        while (!open.isEmpty()) {
            Object operator = open.remove(open.size() - 1);
            found.add(operator);
            if (operator instanceof InputAdapter) {
                continue;
            }
            List<Object> children = children((TreeNode<?>) operator);
            for (int i = children.size() - 1; i >= 0; i--) {
                open.add(children.get(i));
            }
        }
        return found;
    }

    static List<Object> children(TreeNode<?> node) throws ReflectiveOperationException {
        return ScalaSeq.get(node, CHILDREN);
    }
}
