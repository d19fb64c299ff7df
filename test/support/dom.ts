// Gives Node a DOM. It must be registered before Lit is imported, so this is the first import of each widget test.
import { GlobalRegistrator } from "@happy-dom/global-registrator";

GlobalRegistrator.register({ url: "https://chat.example/" });
