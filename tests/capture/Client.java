// SPDX-License-Identifier: Apache-2.0
// GETs with the HTTP client of Java, which looks at no proxy variable: what each gives, or how it fails.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Client {
  public static void main(String[] words) throws Exception {
    HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    for (String word : words) {
      try {
        HttpRequest request = HttpRequest.newBuilder(URI.create(word)).build();
        System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
      } catch (java.io.IOException error) {
        System.out.println("failed: " + error.getClass().getSimpleName());
      }
    }
  }
}
