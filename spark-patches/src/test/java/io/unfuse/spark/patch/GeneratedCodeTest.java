package io.unfuse.spark.patch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.unfuse.spark.Queries;
import io.unfuse.spark.SparkUnderTest;

import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.internal.SQLConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** The effect of the patches on the text of generated code. */
class GeneratedCodeTest {
    static Stream<String> queries() {
        return Queries.ALL.keySet().stream();
    }

    @AfterEach
    void restore() {
        Regions.enabled = true;
    }

    @ParameterizedTest
    @MethodSource("queries")
    void onlyCommentsAreAdded(String name) throws Exception {
        String query = Queries.ALL.get(name);
        List<String> marked = texts(query);
        Regions.enabled = false;
        List<String> plain = texts(query);
        assertEquals(plain.size(), marked.size());
        assertFalse(plain.isEmpty(), "the query generates code");
        for (int i = 0; i < plain.size(); i++) {
            assertFalse(plain.get(i).contains("CodeRegion"));
            assertEquals(
                    GeneratedText.statements(plain.get(i)),
                    GeneratedText.statements(marked.get(i)));
        }
    }

    @ParameterizedTest
    @MethodSource("queries")
    void regionsNameTheOperatorsOfTheStage(String name) throws Exception {
        for (WholeStageCodegenExec stage : SparkUnderTest.stages(Queries.ALL.get(name))) {
            List<Object> fused = Operators.fused(stage);
            Set<String> regions = GeneratedText.regions(body(stage));
            assertTrue(regions.contains("CONSUME_0"), "rows leave the stage: " + regions);
            for (String region : regions) {
                int number = Integer.parseInt(region.substring(region.indexOf('_') + 1));
                assertTrue(number < fused.size(), region);
                Object operator = fused.get(number);
                assertTrue(operator instanceof CodegenSupport, region + " is " + operator);
                assertFalse(
                        region.startsWith("CONSUME") && operator instanceof InputAdapter,
                        "an input consumes nothing");
            }
            assertTrue(regions.contains("PRODUCE_1"), regions::toString);
        }
    }

    /** The product is computed where the projection writes the row, not in its producer's loop. */
    @Test
    void whatAProjectionComputesIsItsOwn() throws Exception {
        String query =
                "select k, sha2(cast(amount * 7919 as string), 512) from facts where amount > 3 order by k";
        int found = 0;
        for (WholeStageCodegenExec stage : SparkUnderTest.stages(query)) {
            List<Object> fused = Operators.fused(stage);
            String innermost = "";
            for (String line : body(stage).split("\n")) {
                if (line.contains("BeginCodeRegion")) {
                    innermost = line.replaceAll(".*_(\\d+)\\).*", "$1");
                } else if (line.contains("7919") && !innermost.isEmpty()) {
                    found++;
                    assertTrue(
                            fused.get(Integer.parseInt(innermost)) instanceof ProjectExec,
                            line + " in " + innermost);
                }
            }
        }
        assertTrue(found > 0, "the product is in the generated code");
    }

    @Test
    void theSameQueryGivesTheSameText() throws Exception {
        for (String query : Queries.ALL.values()) {
            assertEquals(texts(query), texts(query));
        }
    }

    @Test
    void sparksOwnCommentsAndRegionsGoTogether() throws Exception {
        // A static setting, which the session does not allow to change.
        SQLConf.get().setConfString("spark.sql.codegen.comments", "true");
        try {
            List<String> texts = texts(Queries.ALL.get("rollup"));
            assertTrue(texts.stream().anyMatch(text -> text.contains("/*wsc_codegenPipeline*/")));
            texts.forEach(GeneratedText::regions);
        } finally {
            SQLConf.get().unsetConf("spark.sql.codegen.comments");
        }
    }

    @Test
    void codeOfAnOperatorOutsideAStageIsUnchanged() throws Exception {
        WholeStageCodegenExec stage = SparkUnderTest.stages(Queries.ALL.get("limit")).get(0);
        CodegenSupport loose = (CodegenSupport) Operators.fused(stage).get(1);
        assertEquals("x = 1;", Regions.produce(loose, "x = 1;"));
        assertEquals("x = 1;", Regions.consume(loose, "x = 1;"));
        assertEquals("x = 1;", Regions.produce("not an operator", "x = 1;"));
        assertEquals("x = 1;", Regions.consume(null, "x = 1;"));
    }

    private static List<String> texts(String query) throws Exception {
        List<String> texts = new ArrayList<>();
        for (WholeStageCodegenExec stage : SparkUnderTest.stages(query)) {
            texts.add(body(stage));
        }
        return texts;
    }

    private static String body(WholeStageCodegenExec stage) {
        return ((CodeAndComment) stage.doCodeGen()._2()).body();
    }
}
