package io.unfuse.spark.events;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.unfuse.spark.common.Json;
import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.sql.execution.SparkPlanInfo;
import org.junit.jupiter.api.Test;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * Node and region numbers of plans from listeners, written as "parent node operator stage.region".
 */
class PlanTreeTest {
    @Test
    void regionsStopAtInputsAndStartAgainBelow() throws Exception {
        SparkPlanInfo plan =
                node(
                        "AdaptiveSparkPlan",
                        node(
                                "WholeStageCodegen (2)",
                                node(
                                        "SortMergeJoin",
                                        node(
                                                "InputAdapter",
                                                node(
                                                        "ShuffleQueryStage",
                                                        node(
                                                                "Exchange",
                                                                node(
                                                                        "WholeStageCodegen (1)",
                                                                        node(
                                                                                "Filter",
                                                                                node("Range")))))),
                                        node(
                                                "Project",
                                                node("InputAdapter", node("ReusedExchange"))))));
        assertEquals(
                Arrays.asList(
                        "null 0 AdaptiveSparkPlan",
                        "0 1 WholeStageCodegen (2) 2.0",
                        "1 2 SortMergeJoin 2.1",
                        "2 3 InputAdapter 2.2",
                        "3 4 ShuffleQueryStage",
                        "4 5 Exchange",
                        "5 6 WholeStageCodegen (1) 1.0",
                        "6 7 Filter 1.1",
                        "7 8 Range 1.2",
                        "2 9 Project 2.3",
                        "9 10 InputAdapter 2.4",
                        "10 11 ReusedExchange"),
                written(plan));
    }

    @Test
    void subqueriesDoNotCount() throws Exception {
        SparkPlanInfo plan =
                node(
                        "WholeStageCodegen (3)",
                        node(
                                "BroadcastHashJoin",
                                node(
                                        "Filter",
                                        node(
                                                "ColumnarToRow",
                                                node(
                                                        "InputAdapter",
                                                        node(
                                                                "Scan parquet",
                                                                node(
                                                                        "SubqueryBroadcast",
                                                                        node(
                                                                                "BroadcastExchange"))))),
                                        node(
                                                "Subquery",
                                                node(
                                                        "WholeStageCodegen (1)",
                                                        node("HashAggregate"))),
                                        node("ReusedSubquery")),
                                node("InputAdapter")));
        assertEquals(
                Arrays.asList(
                        "null 0 WholeStageCodegen (3) 3.0",
                        "0 1 BroadcastHashJoin 3.1",
                        "1 2 Filter 3.2",
                        "2 3 ColumnarToRow 3.3",
                        "3 4 InputAdapter 3.4",
                        "4 5 Scan parquet",
                        "5 6 SubqueryBroadcast",
                        "6 7 BroadcastExchange",
                        "2 8 Subquery",
                        "8 9 WholeStageCodegen (1) 1.0",
                        "9 10 HashAggregate 1.1",
                        "2 11 ReusedSubquery",
                        "1 12 InputAdapter 3.5"),
                written(plan));
    }

    @Test
    void aPlanWithoutCodegenHasNodesOnly() throws Exception {
        assertEquals(
                Arrays.asList("null 0 Execute CreateViewCommand", "0 1 WholeStageCodegen"),
                written(node("Execute CreateViewCommand", node("WholeStageCodegen"))));
    }

    @Test
    void aVeryDeepPlanIsCutRatherThanFail() throws Exception {
        SparkPlanInfo plan = node("Range");
        for (int i = 0; i < 5000; i++) {
            plan = node("Project", plan);
        }
        assertEquals(2001, written(plan).size());
    }

    private static List<String> written(SparkPlanInfo plan) throws Exception {
        Json json = new Json();
        PlanTree.write(json, plan);
        List<String> lines = new ArrayList<>();
        for (JsonNode node : new ObjectMapper().readTree(json.utf8()).get("nodes")) {
            lines.add(
                    node.get("parent")
                            + " "
                            + node.get("node")
                            + " "
                            + node.get("operator").asText()
                            + (node.get("region").isNull()
                                    ? ""
                                    : " " + node.get("codegen_stage") + "." + node.get("region")));
        }
        return lines;
    }

    private static SparkPlanInfo node(String name, SparkPlanInfo... children) throws Exception {
        Constructor<?> constructor = SparkPlanInfo.class.getConstructors()[0];
        return (SparkPlanInfo)
                constructor.newInstance(
                        name,
                        name + " detail",
                        ScalaSeq.fromList(Arrays.asList(children)),
                        null,
                        ScalaSeq.fromList(Collections.emptyList()));
    }
}
