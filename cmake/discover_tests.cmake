# The tests of one program, told to ctest when it starts (trireme_tests in TriremeRoom.cmake sets the
# variables): an entry for each test, or for each suite of a program that takes long to start, or for those
# tests of a suite whose parameter begins with TEST_TOGETHER. Listed anew where the program or those
# variables have changed. Of entries of several tests the list says, as comments, which test is in which.
#
# In    TEST_PROGRAM, TEST_PREFIX, TEST_EACH (test or suite), TEST_TOGETHER (may be empty), TEST_LISTING (a file
#       to keep the list in), TEST_PROPERTIES, TEST_OPTIONAL (whether the program may be absent)

cmake_policy(VERSION 3.25)

if(NOT EXISTS "${TEST_PROGRAM}")
  if(NOT TEST_OPTIONAL)
    add_test("${TEST_PREFIX}_NOT_BUILT" "${TEST_PROGRAM}")
  endif()
  return()
endif()

function(_trireme_list_tests)
  execute_process(COMMAND "${TEST_PROGRAM}" --gtest_list_tests
                  OUTPUT_VARIABLE lines RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${TEST_PROGRAM} does not list its tests: ${result}\n${errors}")
  endif()
  string(REGEX REPLACE "[ \t]*#[^\n]*" "" lines "${lines}")  # parameters, after the name
  string(REPLACE "\n" ";" lines "${lines}")
  set(script "")
  set(suite "")
  set(entries "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^([^ ].*)\\.$")
      set(suite "${CMAKE_MATCH_1}")
    elseif(line MATCHES "^  (.+)$")
      set(name "${suite}.${CMAKE_MATCH_1}")  # before another match clears it
      if(name MATCHES "DISABLED_")
        continue()
      endif()
      set(ending "")
      if(TEST_TOGETHER AND name MATCHES "/${TEST_TOGETHER}[^/]*$")
        set(ending "/${TEST_TOGETHER}")
      elseif(TEST_EACH STREQUAL "test")
        _trireme_test("${name}" "${name}" SKIP_REGULAR_EXPRESSION ".  SKIPPED . ")
        continue()
      endif()
      string(APPEND script "# ${TEST_PREFIX}/${name} in ${TEST_PREFIX}/${suite}${ending}\n")
      if(NOT "${suite}${ending}" IN_LIST entries)
        list(APPEND entries "${suite}${ending}")
        if(ending)
          _trireme_test("${suite}${ending}" "${suite}.*${ending}*")
        else()
          _trireme_test("${suite}" "${suite}.*")
        endif()
      endif()
    endif()
  endforeach()
  file(WRITE "${TEST_LISTING}" "${script}")
endfunction()

# One entry; to `script` of the caller.
macro(_trireme_test name filter)
  string(APPEND script "add_test([==[${TEST_PREFIX}/${name}]==] [==[${TEST_PROGRAM}]==]"
                       " [==[--gtest_filter=${filter}]==] --gtest_brief=1)\n"
                       "set_tests_properties([==[${TEST_PREFIX}/${name}]==] PROPERTIES"
                       " FAIL_REGULAR_EXPRESSION [==[ 0 tests from 0 test suites]==]")
  foreach(property IN ITEMS ${TEST_PROPERTIES} ${ARGN})
    string(APPEND script " [==[${property}]==]")
  endforeach()
  string(APPEND script ")\n")
endmacro()

if("${TEST_PROGRAM}" IS_NEWER_THAN "${TEST_LISTING}" OR "${CMAKE_PARENT_LIST_FILE}" IS_NEWER_THAN "${TEST_LISTING}")
  _trireme_list_tests()
endif()
include("${TEST_LISTING}")
