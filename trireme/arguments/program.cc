#include "trireme/arguments/program.h"

#include <cstdio>
#include <exception>
#include <new>

#include "trireme/arguments/pages.h"
#include "trireme/error.h"

namespace trireme::arguments {

int report(const char* text, int code) {
  std::fprintf(stderr, "trireme: %s\n", text);
  return code;
}

int run(const std::function<int()>& body) {
  try {
    const int code = body();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return report("standard output took not all that was printed", kFailed);
  } catch (const Error& error) {
    return report(error.what(), error.kind() == ErrorKind::kInvalidArgument ? kMisuse : kFailed);
  } catch (const std::bad_alloc&) {
    return report("out of memory", kFailed);
  } catch (const std::exception& error) {
    return report(error.what(), kFailed);
  }
}

int run_program(CLI::App& app, std::span<const char* const> argv, const std::function<int()>& body,
                const std::function<void(CLI::App&, std::span<const char* const>)>& parse_words) {
  return run([&]() -> int {
    try {
      add_page_options(app);
      finish_set_up(app);
      parse_words(app, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error);  // help, version
      return report(explain(app, error).c_str(), kMisuse);
    }
    return body();
  });
}

}  // namespace trireme::arguments
