#define PY_SSIZE_T_CLEAN
#include "python/backend/call_line.h"

#include <Python.h>
#include <frameobject.h>

#include <string_view>

namespace trireme::backend {
namespace {

/// The interpreter's lock, where this thread has not got it yet.
class Interpreter {
 public:
  Interpreter() : state_(PyGILState_Ensure()) {}
  ~Interpreter() { PyGILState_Release(state_); }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Of what calls collectives on behalf of a program.
bool is_between(std::string_view file) {
  return file.find("/torch/") != std::string_view::npos || file.starts_with("<frozen");
}

std::string_view text_of(PyObject* unicode) {
  Py_ssize_t bytes = 0;
  const char* letters = PyUnicode_AsUTF8AndSize(unicode, &bytes);
  if (letters == nullptr) PyErr_Clear();
  return letters == nullptr ? std::string_view() : std::string_view(letters, bytes);
}

CallLine line_of(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  CallLine line{std::string(text_of(code->co_filename)), std::string(text_of(code->co_name)),
                PyFrame_GetLineNumber(frame)};
  Py_DECREF(code);
  return line;
}

}  // namespace

CallLine call_line() {
  if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) return {};
  const Interpreter interpreter;
  CallLine line;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    line = line_of(frame);
    PyFrameObject* caller = is_between(line.file) ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = caller;
  }
  return line;
}

UnlockedInterpreter::UnlockedInterpreter()
    : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}

UnlockedInterpreter::~UnlockedInterpreter() {
  if (state_ != nullptr) PyEval_RestoreThread(static_cast<PyThreadState*>(state_));
}

std::string to_text(const CallLine& line) {
  if (line.line == 0) return "";
  return line.file + ":" + std::to_string(line.line) + ", in " + line.function;
}

}  // namespace trireme::backend
