package io.unfuse.spark.patch;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.internal.SQLConf;

import java.util.List;

/**
 * Reports the operators that a generated class fuses. Called from the patched {@code
 * WholeStageCodegenExec.doCodeGen}.
 */
public final class CodegenTap {
    private CodegenTap() {}

    /**
     * Emits the {@code codegen} event for a generated text; {@code generated} is {@code
     * (CodegenContext, CodeAndComment)}.
     */
    public static void generated(Object stage, Object generated) {
        try {
            WholeStageCodegenExec plan = (WholeStageCodegenExec) stage;
            CodeAndComment code = (CodeAndComment) ((scala.Tuple2<?, ?>) generated)._2();
            String execution = plan.sparkContext().getLocalProperty("spark.sql.execution.id");
            int maxFields = SQLConf.get().maxToStringFields();
            Json json =
                    new Json(1024)
                            .field("type", "codegen")
                            .field("execution", execution == null ? null : Long.valueOf(execution))
                            .field("codegen_stage", plan.codegenStageId())
                            .field("hash", SourceTap.hash(code.body()))
                            .array("nodes");
            List<Object> fused = Operators.fused(plan);
            for (int region = 0; region < fused.size(); region++) {
                TreeNode<?> operator = (TreeNode<?>) fused.get(region);
                json.item()
                        .field("region", region)
                        .field("operator", operator.nodeName())
                        .field("detail", operator.simpleString(maxFields))
                        .end();
            }
            Agent.event(json.endArray());
        } catch (Throwable error) {
            Agent.failed("reporting the operators of generated code", error);
        }
    }
}
