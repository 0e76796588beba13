// Find the source files of classes with javac: `java Sources.java SOURCEPATH < names`, lines `name<TAB>file` on stdout.
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreePath;
import com.sun.source.util.Trees;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import javax.lang.model.element.Element;
import javax.lang.model.element.PackageElement;
import javax.lang.model.element.TypeElement;
import javax.lang.model.util.Elements;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

public class Sources {
  private static Trees trees;

  public static void main(String[] arguments) throws Exception {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    List<String> options = List.of("-proc:none", "-implicit:none", "-sourcepath", arguments[0]);
    JavacTask task = (JavacTask) compiler.getTask(null, null, diagnostic -> {}, options, List.of("java.lang.Object"), null);
    trees = Trees.instance(task);
    Elements elements = task.getElements();
    BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
    for (String name = names.readLine(); name != null; name = names.readLine()) {
      String inner = name.endsWith(".*") ? name.substring(0, name.length() - 2) : name;
      PackageElement held = name.endsWith(".*") ? elements.getPackageElement(inner) : null;
      if (held != null && !held.getEnclosedElements().isEmpty()) {
        for (Element element : held.getEnclosedElements()) tell(name, element);
        continue;
      }
      for (; !inner.isEmpty(); inner = inner.substring(0, Math.max(inner.lastIndexOf('.'), 0))) {
        TypeElement found = elements.getTypeElement(inner);
        if (found != null) {
          tell(name, found);
          break;
        }
      }
    }
  }

  private static void tell(String name, Element element) {
    TreePath place = trees.getPath(element);
    if (place != null) System.out.println(name + "\t" + place.getCompilationUnit().getSourceFile().getName());
  }
}
