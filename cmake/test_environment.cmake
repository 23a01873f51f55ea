# Read by ctest before it starts a test. What runs the tests may be continuous integration; what they start
# is not, unless a test says so itself.
foreach(name IN ITEMS CI GITHUB_ACTIONS GITHUB_EVENT_PATH GITEA_ACTIONS FORGEJO_ACTIONS GITLAB_CI JENKINS_URL
                      CIRCLECI TRAVIS BUILDKITE DRONE TF_BUILD APPVEYOR CIRRUS_CI BITBUCKET_BUILD_NUMBER
                      TEAMCITY_VERSION CODEBUILD_BUILD_ID SEMAPHORE)
  unset(ENV{${name}})
endforeach()
