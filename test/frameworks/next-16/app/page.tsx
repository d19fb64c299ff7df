import { Chat } from "./chat";

export default function Page() {
  return (
    <main>
      <h1>Shop</h1>
      <Chat />
    </main>
  );
}
