import { Element } from "./element";

export default function Page() {
  return (
    <main>
      <h1>Shop</h1>
      <Element />
    </main>
  );
}
