import { createApp } from "vue";
import Help from "./Help.vue";

createApp(Help).mount("#root");
