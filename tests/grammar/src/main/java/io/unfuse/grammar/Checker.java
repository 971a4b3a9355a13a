package io.unfuse.grammar;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.languagetool.JLanguageTool;
import org.languagetool.Languages;
import org.languagetool.rules.RuleMatch;

/**
 * Checks each line of standard input as a separate text.
 *
 * <p>Argument: a file with the ids of disabled rules, one per line. Each finding is a line of the output: the number
 * of the text from 0, the rule, the begin and the end in the text, the message and the first suggestion, separated by
 * tabs.
 */
public final class Checker {
  private Checker() {}

  public static void main(String[] args) throws IOException {
    JLanguageTool tool = new JLanguageTool(Languages.getLanguageForShortCode("en-GB"));
    tool.disableRules(Files.readAllLines(Path.of(args[0])));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    int number = 0;
    for (String text = in.readLine(); text != null; text = in.readLine()) {
      for (RuleMatch match : tool.check(text)) {
        out.println(line(number, match));
      }
      number++;
    }
  }

  private static String line(int number, RuleMatch match) {
    List<String> suggestions = match.getSuggestedReplacements();
    return String.join(
        "\t",
        Integer.toString(number),
        match.getSpecificRuleId(),
        Integer.toString(match.getFromPos()),
        Integer.toString(match.getToPos()),
        match.getMessage().replaceAll("</?suggestion>", "\"").replaceAll("\\s+", " "),
        suggestions.isEmpty() ? "" : suggestions.get(0).replaceAll("\\s+", " "));
  }
}
