# Read by ctest before it starts a test. What runs the tests may be continuous integration; what they start
# is not, unless a test says so itself. These are the names of runner/forge/event.cc, and the event's file.
foreach(name IN ITEMS CI GITHUB_EVENT_PATH JENKINS_HOME HUDSON_HOME CIRCLECI TRAVIS BUILDKITE DRONE
                      CI_SYSTEM_NAME TF_BUILD APPVEYOR BITBUCKET_BUILD_NUMBER TEAMCITY_VERSION SEMAPHORE
                      bamboo_buildKey bamboo_planKey GO_PIPELINE_NAME TASKCLUSTER_ROOT_URL PROW_JOB_ID
                      BITRISE_BUILD_NUMBER GITLAB_CI CI_SERVER CI_SERVER_URL CI_PIPELINE_ID CI_PIPELINE_IID
                      CI_PIPELINE_SOURCE CI_PROJECT_ID CI_JOB_ID CI_RUNNER_ID CI_API_V4_URL GITHUB_ACTIONS
                      GITEA_ACTIONS FORGEJO_ACTIONS GITHUB_RUN_ID JENKINS_URL CIRRUS_CI CODEBUILD_BUILD_ID
                      bamboo_buildNumber GO_SERVER_URL TASKCLUSTER_PROXY_URL TASK_ID ATC_EXTERNAL_URL
                      BUILD_PIPELINE_NAME BUILD_SUBMITTER BUILD_REASON BUILDER_OUTPUT HARNESS_BUILD_ID
                      CF_BUILD_ID HEROKU_TEST_RUN_ID SCREWDRIVER BUDDY KOKORO_JOB_NAME BUILD_NUMBER BUILD_ID)
  unset(ENV{${name}})
endforeach()
