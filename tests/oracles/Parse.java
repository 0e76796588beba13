// List the files that javac's parser rejects: `java Parse.java < paths`, one path per line.
import com.sun.source.util.JavacTask;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaFileObject;
import javax.tools.ToolProvider;

public class Parse {
  public static void main(String[] arguments) throws Exception {
    var compiler = ToolProvider.getSystemJavaCompiler();
    var input = new BufferedReader(new InputStreamReader(System.in));
    for (String path; (path = input.readLine()) != null; ) {
      var found = new DiagnosticCollector<JavaFileObject>();
      var files = compiler.getStandardFileManager(found, null, null);
      var task = (JavacTask) compiler.getTask(
          null, files, found, List.of("-proc:none"), null, files.getJavaFileObjects(path));
      task.parse();
      if (found.getDiagnostics().stream().anyMatch(each -> each.getKind() == Diagnostic.Kind.ERROR)) {
        System.out.println(path);
      }
    }
  }
}
