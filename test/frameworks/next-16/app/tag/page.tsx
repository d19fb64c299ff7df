import Script from "next/script";

export default function Page() {
  return (
    <main>
      <h1>Shop</h1>
      <Script src="https://chat.example.com/widget.js" data-label="Ask us" />
    </main>
  );
}
